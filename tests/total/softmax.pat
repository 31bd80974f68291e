-- fuzz: seed=1 n=7 m=24

entry softmax [n][m] (xs: [n][m]f32) : [n][m]f32 =
  map (\r -> let mx = reduce max f32.lowest r let e = map (\x -> exp (x - mx)) r let s = reduce (+) 0 e in map (/ s) e) xs
