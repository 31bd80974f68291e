-- fuzz: seed=1 n=33 m=40
-- The condition keeps the index of the other operand in its array.
entry f [n][m] (A: [n][2*m]f32) (B: [m][n]f32) : [n][n]f32 =
  tabulate_2d n n (\i j -> sum (tabulate (2*m) (\k -> if k < m then A[i, k] * B[k, j] else 0)))
    |> map2 (\y row -> let s = loop acc = 0f32 for k < 2*m do acc + y[k] in map (+ s) row) A
