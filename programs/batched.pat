def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- The products of many pairs of matrices, C[i] = A[i]*B[i].
entry batched [b][n][m][k] (A: [b][n][k]f32) (B: [b][k][m]f32) : [b][n][m]f32 =
  map2 (\a b -> map (\row -> map (dot row) (transpose b)) a) A B
