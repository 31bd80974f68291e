-- fuzz: seed=1 n=1009

-- Counts and maxima of the values of each bin.
-- gen: is=whole:0..30 vs=normal
entry histpairs [n] (is: [n]i32) (vs: [n]f32) : [32](i32, f32) =
  histogram (\(a, b) (c, d) -> (a + c, max b d)) (0, f32.lowest) 32 is (map (\v -> (1, v)) vs)
