-- fuzz: seed=1 n=40

entry power [n] (a: [n][n]f32) (x0: [n]f32) : [n]f32 = loop (x = x0) for i < 10 do (let y = map (\r -> reduce (+) 0 (map2 (*) r x)) a let s = sqrt (reduce (+) 0 (map (\v -> v * v) y)) in map (/ s) y)
