-- fuzz: seed=1 n=101

entry ifarr2 [n] (xs: [n]f32) (ys: [n]f32) : [n]f32 = if reduce (+) 0 xs > 0 then map (* 2) xs else ys
