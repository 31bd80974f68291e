def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

-- A product of matrices added to a matrix, alpha*A*B + beta*C (BLAS gemm).
entry gemm [n][m][k]
  (A: [n][k]f32)
  (B: [k][m]f32)
  (C: [n][m]f32)
  (alpha: f32)
  (beta: f32)
  : [n][m]f32 =
  map2 (\row cs -> map2 (\col c -> alpha * dot row col + beta * c) (transpose B) cs) A C
