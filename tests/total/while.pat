-- fuzz: seed=1 n=101

entry whilearr [n] (xs: [n]f32) : [n]f32 = loop (x = xs) while reduce max 0 (map abs x) > 1 do map (* 0.5) x
