-- fuzz: seed=1 n=8192 m=32

entry f [n][m] (xs: [n][m]f32) : [n][m]f32 =
  map (\row -> let top = maximum row let e = map (\x -> exp (x - top)) row in map (/ sum e) e) xs
