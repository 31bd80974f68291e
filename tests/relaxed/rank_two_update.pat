-- fuzz: seed=1 n=33 m=18
-- Two products in one sum, of which a triangle is needed.
entry f [n][m] (alpha: f32) (C: [n][n]f32) (A: [n][m]f32) (B: [n][m]f32) : [n][n]f32 =
  tabulate_2d n n (\i j ->
    if j <= i then C[i, j] + alpha * sum (map4 (\ai bi aj bj -> aj * bi + bj * ai) A[i] B[i] A[j] B[j]) else C[i, j])
