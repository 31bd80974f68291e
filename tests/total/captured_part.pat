-- fuzz: seed=1 n=16

entry z_part [n] (xs: [n][12]f32) : [n][4]f32 = map (\r -> let c = r[1] in reducePart (+) (c - c) 4 r) xs
