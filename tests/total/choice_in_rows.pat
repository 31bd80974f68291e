-- fuzz: seed=1 n=16 m=20

entry z_ifrow [n][m] (xs: [n][m]f32) : [n][m]f32 = map (\r -> if r[0] > 0 then map (* 2) r else reverse r) xs
