-- fuzz: seed=1 n=101

entry ifarr [n] (c: bool) (xs: [n]f32) (ys: [n]f32) : [n]f32 = if c then map (* 2) xs else map2 (+) xs ys
