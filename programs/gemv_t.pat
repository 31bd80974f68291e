def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- The transpose of a row-major matrix times a vector plus a vector, alpha*A^T*x + beta*y (BLAS gemv, transposed).
entry gemv_t [n][m] (A: [n][m]f32) (x: [n]f32) (y: [m]f32) (alpha: f32) (beta: f32) : [m]f32 =
  map2 (\col yi -> alpha * dot col x + beta * yi) (transpose A) y
