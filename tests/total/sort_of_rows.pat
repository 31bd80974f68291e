-- fuzz: seed=1 n=3 m=157
-- gen: ks=whole:0..7
-- Sorts of rows that a group sorts by digits, with and without the counts of the buckets.
entry sorts [n] [m] (xs: [n][m]f32) (ys: [n][m]f32) (ks: [n][m]i32) : ([n][m](f32, f32), [n][m]i32, [n]([7]i32, [m]f32), [n]f32) =
  let pairs = map2 (\x y -> sort_by_key (.0) (zip x y)) xs ys
  let places = map (\x -> map i32.i64 (argsort x)) xs
  let counted = map2 (\k x -> counting_sort 7 k x) ks xs
  let medians = map (\x -> (sort x)[m / 2]) ys
  in (pairs, places, counted, medians)
