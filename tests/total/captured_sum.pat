-- fuzz: seed=1 n=32 m=16 k=20

entry sinsum [n][m][k] (xs: [n]f32) (ys: [m]f32) (ks: [k]f32) : [n][m]f32 = map (\u -> map (\v -> let x = u + v in reduce (+) 0 (map (\q -> sin (q * x)) ks)) ys) xs
