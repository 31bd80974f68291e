-- Electromagnetic waves in a plane (FDTD by Yee's scheme): the electric field across the plane, and the two components of the magnetic field
-- in it, after `steps` steps. `material` is the square of the speed of light in a cell, in units of cells and steps. The border
-- reflects, and a source in the centre swings with `frequency`.
-- gen: steps=const:4 frequency=const:0.2 material=uniform:0.1..0.25
entry fdtd [n] [m] (steps: i32) (frequency: f32) (material: [n][m]f32) : ([n][m]f32, [n][m]f32, [n][m]f32) =
  let zero = replicate n (replicate m 0.0)
  in
    loop (e, hx, hy) = (zero, zero, zero) for step < steps do
      let hx = tabulate_2d n m (\i j -> if i < n - 1 then hx[i, j] - (e[i + 1, j] - e[i, j]) else 0)
      let hy = tabulate_2d n m (\i j -> if j < m - 1 then hy[i, j] + (e[i, j + 1] - e[i, j]) else 0)
      let next i j =
        let left = if j > 0 then hy[i, j - 1] else 0
        let above = if i > 0 then hx[i - 1, j] else 0
        let source = if i == n / 2 && j == m / 2 then sin (frequency * f32.i32 step) else 0
        in e[i, j] + material[i, j] * (hy[i, j] - left - (hx[i, j] - above)) + source
      in (tabulate_2d n m next, hx, hy)
