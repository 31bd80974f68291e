-- fuzz: seed=1 n=101

entry los [n] (hs: [n]f32) : [n]bool = let ang = map2 (\h i -> h / (f32.i32 i + 1)) hs (iota n) let m = scan max f32.lowest ang in map2 (>=) ang m
