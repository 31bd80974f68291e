-- fuzz: seed=1 n=7 m=24

entry rmsnorm [n][m] (xs: [n][m]f32) (g: [m]f32) : [n][m]f32 =
  map (\r -> let s = rsqrt (reduce (+) 0 (map (\x -> x * x) r) / f32.i32 m + 1e-6) in map2 (\x w -> x * s * w) r g) xs
