-- fuzz: seed=1 n=13 m=7
-- Places that conditions and arithmetic keep inside of arrays, and one that may lie outside and never does.
entry f [n] [m] (U: [n][m]f32) (xs: [n]f32) : ([n][m]f32, [n][m]f32, [n]f32, [n]f32, [n]f32) =
  let above = tabulate_2d n m (\i j -> if i > 0 && j < m - 1 then U[i - 1, j + 1] + U[i, j] else 0)
  let clamped = tabulate_2d n m (\i j -> U[max (i - 1) 0, min (j + 1) (m - 1)] - U[(i + 1) % n, (j + m - 1) % m])
  let either = tabulate n (\i -> if i < 1 || i >= n - 1 then xs[i] else xs[i - 1] + xs[i + 1])
  let also = tabulate n (\i -> if i >= 2 && xs[i] > 0 then xs[i - 2] else 0)
  let named = tabulate n (\i -> let inside = i >= 3 in if !inside then 0 else xs[i - 3])
  in (above, clamped, either, also, named)
