-- fuzz: seed=174121780890358 n=2 m=8
entry rotated_matrices [n] [m] (A: [n][m]i32) (xs: [n](bool, i32)) = (map (\_ -> rotate 1 A) xs, map (\row -> rotate (-1) A) A)
