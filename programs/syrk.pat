def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- A matrix times its own transpose, added to a matrix, alpha*A*A^T + beta*C (BLAS syrk, both triangles).
entry syrk [n][k] (A: [n][k]f32) (C: [n][n]f32) (alpha: f32) (beta: f32) : [n][n]f32 =
  map2 (\row cs -> map2 (\other c -> alpha * dot row other + beta * c) A cs) A C
