-- fuzz: seed=1 n=37
-- The product of two lower triangular matrices.
entry f [n] (A: [n][n]f32) (B: [n][n]f32) : [n][n]f32 =
  generate n (\i -> generate n (\j ->
    if i < j then 0 else reduce (+) 0 (generate n (\k -> if k >= j && k <= i then A[i][k] * B[k][j] else 0))))
