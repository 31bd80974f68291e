-- fuzz: seed=1 n=1000
-- fuzz: seed=2 n=7

-- The greatest and the least value of each bin, of both signs, where neighbours have the same bin.
-- gen: is=sorted:0..5 xs=uniform:-9..9
entry extremes [n] (is: [n]i32) (xs: [n]f32) : ([6]f32, [6]f32, [6]f64) =
  (histogram max (-f32.inf) 6 is xs, histogram min f32.inf 6 is xs, histogram max (-f64.inf) 6 is (map f64.f32 xs))
