-- fuzz: seed=1 n=1009 m=37
-- Sums, counts and greatest values of the same bins are one histogram. The squared deviations need the means.
-- gen: keys=whole:-40..400 xs=whole:-20..20
entry statistics [n][m] (keys: [n]i32) (xs: [n]f32) : ([m]f32, [m]i32, [m]f32, [m]f32) =
  let is = map (\k -> if k < 0 then -1 else k / 10) keys
  let sums = histogram (+) 0 m is xs
  let counts = histogram (+) 0 m is (replicate n 1)
  let means = map2 (\s c -> if c == 0 then 0 else s / f32.i32 c) sums counts
  let apart = map2 (\i x -> if i < 0 || i >= i32.i64 m then 0 else (x - means[i]) ** 2) is xs in
  (means, counts, histogram max f32.lowest m is xs, histogram (+) 0 m is apart)
