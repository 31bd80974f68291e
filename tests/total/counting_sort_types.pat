-- fuzz: seed=1 n=203
-- gen: js=whole:-5000000000..9000000000 us=uniform:0..4294967295 bs=whole:0..256
-- Numbers far outside the buckets, in types that are wider or narrower than an index.
entry counting_types [n] (js: [n]i64) (us: [n]u32) (bs: [n]u8) (xs: [n]i32) : (([3]i64, [n]i32), ([5]u32, [n]i32), [n]i32, [n]u32) =
  (counting_sort 3 (map (/ 1000000000) js) xs,
    counting_sort 5 us xs,
    (counting_sort 300 bs xs).1,
    (counting_sort 2 js us).1)
