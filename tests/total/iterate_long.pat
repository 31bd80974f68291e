-- fuzz: seed=1 n=19

entry z_ri [n] (xs: [n]f32) : [n]f32 = iterate 40 (map (* 0.5)) xs
