-- fuzz: seed=1 n=101
-- gen: is=whole:0..5
-- The runs of equal keys, and the sums of their values.
entry segments [n] (is: [n]i32) (xs: [n]f32) : ([n]f32, (i32, [n]f32), (i32, [n]i32)) =
  let keys = sort is
  let starts = map2 (\k i -> i == 0 || k != keys[i - 1]) keys (iota n) in
  (segmented_scan (+) 0 starts xs,
    segmented_reduce (+) 0 starts xs,
    segmented_reduce max i32.lowest starts keys)
