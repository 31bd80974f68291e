-- fuzz: seed=1 n=101
-- gen: is=whole:-9..9
-- The kept elements are counted, and used by their index.
entry partition_and_sum [n] (xs: [n]f32) (is: [n]i32) : ((i32, [n]f32), (i64, [n](f32, i32)), i32) =
  let (k, ys) = filter (\i -> i % 3 == 0) is
  let kept = map2 (\j y -> if j < k then y * y else 0) (indices ys) ys in
  (partition (> 0.25) xs, partition (\(x, i) -> x > f32.i32 i) (zip xs is), sum kept)
