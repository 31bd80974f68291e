-- fuzz: seed=1 n=7 m=24

entry layernorm [n][m] (xs: [n][m]f32) (g: [m]f32) (b: [m]f32) : [n][m]f32 =
  map (\r -> let mu = reduce (+) 0 r / f32.i32 m let d = map (\x -> x - mu) r let v = reduce (+) 0 (map (\x -> x * x) d) / f32.i32 m in map3 (\x gg bb -> x * rsqrt (v + 1e-5) * gg + bb) d g b) xs
