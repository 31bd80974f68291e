-- fuzz: seed=1 n=16 m=20

entry z_red [n][m] (xs: [n][m]f32) : [n]f32 = map (\r -> reduceSeq (\a x -> a * r[1] + x) r[0] r) xs
