-- fuzz: seed=1 n=101

entry compact [n] (xs: [n]f32) : ([n]f32, i32) = let fl = map (\x -> if x > 0 then 1 else 0) xs let off = scan (+) 0 fl let idx = map2 (\f o -> if f == 1 then o - 1 else -1) fl off in (scatter (replicate n 0) idx xs, reduce (+) 0 fl)
