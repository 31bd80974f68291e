-- fuzz: seed=244368918155233 n=16
-- gen: a0=whole:-4..5 a1=whole:-4..5
entry random [n] (a0: [n][n]i32) (a1: [n][n]f32) =
  zip (gather a1 (map (\i -> max 0 i % n) (iota n))) (replicate n 1.0)
