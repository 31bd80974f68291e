-- fuzz: seed=1 n=10 m=0 k=3

-- There are no elements, and no rows, to read.
entry either [n][m][k] (xs: [n]f32) (ys: [m](f32, i32)) (rows: [m][k]f32) : ([n]f32, [n][k]f32) =
  (map (\i -> if i < m then ys[i].0 + f32.i32 ys[i].1 else xs[i]) (iota n),
   map (\i -> if i < m then rows[i] else replicate k xs[i]) (iota n))
