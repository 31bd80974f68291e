-- fuzz: seed=1 n=7 m=20

entry looprow [n][m] (xs: [n][m]f32) : [n][m]f32 = map (\r -> loop (x = r) for s < 5 do map (\v -> v * 0.5 + 1) x) xs
