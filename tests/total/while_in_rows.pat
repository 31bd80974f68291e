-- fuzz: seed=1 n=16 m=20

entry z_wr [n][m] (xs: [n][m]f32) : [n][m]f32 = map (\r -> loop (x = r) while reduce max 0 (map abs x) > 1 do map (* 0.5) x) xs
