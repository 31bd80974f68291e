-- fuzz: seed=1 m=70 n=5
-- A product with what lies behind the diagonal of a matrix, by a loop that counts from there.
entry f [m][n] (s: f32) (A: [m][m]f32) (B: [m][n]f32) : [m][n]f32 =
  generate m (\i ->
    generate n (\j ->
      let sum = loop sum = B[i, j] for d < m - 1 - i do let k = i + 1 + d in sum + A[k, i] * B[k, j] in
      s * sum))
