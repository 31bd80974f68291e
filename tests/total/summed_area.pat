-- fuzz: seed=1 n=7 m=19

entry prefix2d [n][m] (xs: [n][m]f32) : [n][m]f32 = transpose (map (scan (+) 0) (transpose (map (scan (+) 0) xs)))
