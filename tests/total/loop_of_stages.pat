-- fuzz: seed=1 n=16 m=20

entry z_nested [n][m] (xs: [n][m]f32) : [n][m]f32 = loop (a = xs) for i < 4 do (let s = map (reduce (+) 0) a in map2 (\r t -> map (\x -> x - t / f32.i32 m + f32.i32 i) r) a s)
