-- fuzz: seed=1 n=50

entry ends [n] (g: [n]f32) : [n]f32 = let p = pad 1 1 clamp g in map (\i -> p[i] + p[i + 2]) (iota n)
