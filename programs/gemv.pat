def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- A row-major matrix times a vector plus a vector, y = alpha*A*x + beta*y (BLAS gemv).
entry gemv [n][m] (A: [n][m]f32) (x: [m]f32) (y: [n]f32) (alpha: f32) (beta: f32) : [n]f32 =
  map2 (\row yi -> alpha * dot row x + beta * yi) A y
