-- fuzz: seed=1 n=101

entry jacobi [n] (xs: [n]f32) : [n]f32 = loop (x = xs) for s < 10 do map (\w -> (w[0] + w[1] + w[2]) / 3) (slide 3 1 (pad 1 1 clamp x))
