def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- The product of a matrix and the transpose of another, C = A*B^T.
entry matmul_nt [n][m][k] (A: [n][k]f32) (B: [m][k]f32) : [n][m]f32 =
  map (\row -> map (dot row) B) A
