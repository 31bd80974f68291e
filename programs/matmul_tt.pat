def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- The product of the transposes of two matrices, C = A^T*B^T.
entry matmul_tt [n][m][k] (A: [k][n]f32) (B: [m][k]f32) : [n][m]f32 =
  map (\col -> map (dot col) B) (transpose A)
