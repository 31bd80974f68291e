def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- The product of the transpose of a matrix and another, C = A^T*B.
entry matmul_tn [n][m][k] (A: [k][n]f32) (B: [k][m]f32) : [n][m]f32 =
  map (\col -> map (dot col) (transpose B)) (transpose A)
