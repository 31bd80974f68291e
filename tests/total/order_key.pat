-- fuzz: seed=1 n=101
-- gen: is=whole:-100..100
entry order_keys [n] (xs: [n]f32) (ys: [n]f64) (is: [n]i8) : ([n]u32, [n]u64, [n]u8, u32) =
  (map order_key xs, map order_key ys, map order_key is, reduce max 0 (map order_key xs))
