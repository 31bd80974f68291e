-- A value for each cell of a grid: `inner i j` in its inside. A cell of the border has the value of its neighbour in the inside,
-- with its sign changed at the borders of a velocity across them (`b` is 1 for the first coordinate, 2 for the second, 0 for
-- none); one in a corner has the mean of its two neighbours.
def bordered [g] (g: i32) (b: i32) (inner: i32 -> i32 -> f32) : [g][g]f32 =
  let within i = clamp i 1 (g - 2)
  let edge i j =
    let sign = if (i != within i && b == 1) || (i == within i && j != within j && b == 2) then -1 else 1
    in sign * inner (within i) (within j)
  in
    tabulate_2d g g (\i j ->
      if i == within i || j == within j then edge i j
      else 0.5 * (edge (within i) j + edge i (within j)))

-- `steps` steps of Jacobi's method for `c * x - a * (sum of the four neighbours) = s`.
def relaxed [g] (steps: i32) (b: i32) (a: f32) (c: f32) (s: [g][g]f32) : [g][g]f32 =
  loop x = replicate g (replicate g 0.0) for k < steps do
    bordered g b (\i j -> (s[i, j] + a * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])) / c)

def diffused [g] (steps: i32) (b: i32) (rate: f32) (dt: f32) (s: [g][g]f32) : [g][g]f32 =
  let a = dt * rate * f32.i32 (g - 2) * f32.i32 (g - 2)
  in relaxed steps b a (1 + 4 * a) s

-- What the velocity (u, v) carries to each cell.
def carried [g] (b: i32) (dt: f32) (u: [g][g]f32) (v: [g][g]f32) (s: [g][g]f32) : [g][g]f32 =
  let last = f32.i32 (g - 2)
  in
    bordered g b (\i j ->
      let x = clamp (f32.i32 i - dt * last * u[i, j]) 0.5 (last + 0.5)
      let y = clamp (f32.i32 j - dt * last * v[i, j]) 0.5 (last + 0.5)
      let (i0, j0) = (i32.f32 x, i32.f32 y)
      let (s1, t1) = (x - f32.i32 i0, y - f32.i32 j0)
      in
        (1 - s1) * ((1 - t1) * s[i0, j0] + t1 * s[i0, j0 + 1])
          + s1 * ((1 - t1) * s[i0 + 1, j0] + t1 * s[i0 + 1, j0 + 1]))

-- The part of a velocity without divergence.
def projected [g] (steps: i32) (u: [g][g]f32) (v: [g][g]f32) : ([g][g]f32, [g][g]f32) =
  let divergence =
    bordered g 0 (\i j -> -0.5 * (u[i + 1, j] - u[i - 1, j] + v[i, j + 1] - v[i, j - 1]) / f32.i32 g)
  let p = relaxed steps 0 1 4 divergence
  let half = 0.5 * f32.i32 (g - 2)
  in
    ( bordered g 1 (\i j -> u[i, j] - half * (p[i + 1, j] - p[i - 1, j]))
    , bordered g 2 (\i j -> v[i, j] - half * (p[i, j + 1] - p[i, j - 1]))
    )

-- Stable fluids (Stam; Accelerate's benchmark): velocities u and v and densities d behind `steps` steps of time `dt`, with `inner`
-- steps of each linear solver.
-- gen: steps=const:1 inner=const:20 dt=const:0.1 diffusion=const:0.0001 viscosity=const:0.00001 u=uniform v=uniform d=uniform
entry fluid [g] (u: [g][g]f32) (v: [g][g]f32) (d: [g][g]f32)
  (steps: i32) (inner: i32) (dt: f32) (diffusion: f32) (viscosity: f32) : ([g][g]f32, [g][g]f32, [g][g]f32) =
  loop (u, v, d) for step < steps do
    let (pu, pv) = projected inner (diffused inner 1 viscosity dt u) (diffused inner 2 viscosity dt v)
    let (nu, nv) = projected inner (carried 1 dt pu pv pu) (carried 2 dt pu pv pv)
    in (nu, nv, carried 0 dt u v (diffused inner 0 diffusion dt d))
