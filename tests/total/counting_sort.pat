-- fuzz: seed=1 n=301
-- gen: is=whole:-2..9 js=whole:0..40
-- Numbers outside the buckets; pairs, rows, more buckets than a tile has local memory for; a bucket that is a choice.
entry counting [n] (is: [n]i64) (js: [n]i32) (xs: [n]f32) : (([7]i64, [n]f32), [n](f32, i32), ([40]i32, [n][2]f32), [400]i32, [1]i64) =
  let rows = map (\x -> [x, 2 * x]) xs in
  (counting_sort 7 is xs,
    (counting_sort 2 (map (\x -> if x > 0 then 1 else 0) xs) (zip xs (indices xs))).1,
    counting_sort 40 js rows,
    (counting_sort 400 (map (* 10) js) xs).0,
    (counting_sort 1 is xs).0)
