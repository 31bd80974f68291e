-- fuzz: seed=4 b=130 t=11 s=5

-- Expected transitions: a sum over sequences and steps, of a value and the next one.
entry transitions [b][t][s]
  (X: [b][t][s]f32)
  (Y: [b][t][s]f32)
  (w: [b][t]f32)
  (A: [s][s]f32)
  : [s][s]f32 =
  tabulate_2d s s (\i j ->
    A[i, j]
      * sum
        (map
          (\q -> sum (map (\k -> X[q, k, i] * Y[q, k + 1, j] * w[q, k + 1]) (iota (t - 1))))
          (iota b)))
