-- fuzz: seed=1 n=101

entry segscan [n] (fs: [n]bool) (xs: [n]f32) : [n]f32 = map (\(f, x) -> x) (scan (\(f1,a) (f2,b) -> (f1 || f2, if f2 then b else a + b)) (false, 0) (zip fs xs))
