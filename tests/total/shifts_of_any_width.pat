-- fuzz: seed=1 n=203
-- gen: ks=uniform:-70..70
entry shifts [n] (xs: [n]i32) (ks: [n]i32) : ([n]i32, [n]i32, [n]u32, [n]u32, [n]i32, [n]i32) =
  let us = map u32.i32 xs
  let js = map u32.i32 ks
  in (map2 (<<) xs ks, map2 (>>) xs ks, map2 (<<) us js, map2 (>>) us js, map (<< 32) xs, map (>> 40) xs)
