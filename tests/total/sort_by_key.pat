-- fuzz: seed=1 n=53
-- gen: is=whole:-9..9
-- Equal keys keep their order.
entry sort_by_keys [n] (xs: [n]f32) (is: [n]i32) : ([n](f32, i32), [n]i32) =
  (sort_by_key (\(_, i) -> i % 4) (zip xs is), sort_by_key (\i -> -i * i) is)
