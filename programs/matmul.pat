def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- The product of two row-major matrices, C = A*B.
entry matmul [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
  map (\row -> map (dot row) (transpose B)) A
