-- fuzz: seed=1 n=19

entry z_tl [n] (xs: [n]f32) : ([n]f32, f32) = loop ((a, s) = (xs, 0.0)) for i < 6 do (map (* 0.9) a, s + reduce (+) 0 a)
