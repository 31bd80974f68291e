-- fuzz: seed=1 n=7 m=19

entry colsoft [n][m] (a: [n][m]f32) : [n][m]f32 = transpose (map (\r -> let mx = reduce max f32.lowest r let e = map (\x -> exp (x - mx)) r let s = reduce (+) 0 e in map (/ s) e) (transpose a))
