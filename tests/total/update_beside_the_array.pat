-- fuzz: seed=1 n=5 m=2
entry update_beside_the_array [n] [m] (A: [n][m][n]i32) (B: [n][n]i32) =
  (loop X = A for i < m + 2 do X with [:, i] <- map (map (+ i)) B, scatter B (replicate m (-1)) (take m B))
