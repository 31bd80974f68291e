-- fuzz: seed=3 n=41
-- gen: xs=uniform:0..65535 bs=whole:-128..127 zs=uniform:0..18446744073709551615
entry sort_of_types [n]
  (xs: [n]u16)
  (bs: [n]i8)
  (zs: [n]u64)
  (ys: [n]f64)
  : ([n]u16, [n]i8, [n]u64, [n]f64) =
  (sort xs, sort bs, sort zs, sort ys)
