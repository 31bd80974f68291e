-- fuzz: seed=1 n=101
-- gen: is=whole:-9..9
entry sort_floats [n] (xs: [n]f32) (is: [n]i32) : ([n]f32, [n]i32, [n]i32) =
  (sort xs, sort is, argsort is)
