-- fuzz: seed=1 n=1030 m=3 c=2
-- gen: A=whole:-4..5 B=whole:0..9
entry long_columns [n] [m] [c] (A: [n][m]i32) (B: [c][n][m]f32) =
  (scan (map2 (+)) (replicate m 0) A, map (\X -> transpose (map (\col -> map (* 2) (scan max 0 (map abs col))) (transpose X))) B,
   transpose (map (\col -> scan_exclusive (\(a, b) (c, d) -> (a + c, max b d)) (0, 0) (zip col col)) (transpose A)))
