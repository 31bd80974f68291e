-- fuzz: seed=1 n=16 m=12

entry redjoin [n][m] (xs: [n][m]f32) (ys: [m]f32) : [n]f32 = map (\r -> reduce (+) 0 (join (map (\a -> map (\b -> a * b) ys) r))) xs
