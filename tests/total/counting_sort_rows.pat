-- fuzz: seed=1 n=4 m=37
-- gen: kss=whole:0..5
-- Each row for itself.
entry counting_rows [n][m] (kss: [n][m]i32) (xss: [n][m]f32) : [n]([5]i32, [m]f32) =
  map2 (\ks xs -> counting_sort 5 ks xs) kss xss
