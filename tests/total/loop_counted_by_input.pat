-- fuzz: seed=1 n=101

entry looparr [n] (steps: i32) (xs: [n]f32) : [n]f32 = loop (x = xs) for s < steps do map (\v -> v * 0.5 + 1) x
