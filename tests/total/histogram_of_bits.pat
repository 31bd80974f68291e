-- fuzz: seed=1 n=1001
-- gen: is=uniform:0..16
-- The bins of sets of bits are combined by atomic operations.
entry sets [n] (is: [n]i32) (xs: [n]u32) (ys: [n]i32) : ([16]u32, [16]i32, [16]i32, [16](u32, i32)) =
  ( histogram (|) 0 16 is xs
  , histogram (&) (~0) 16 is ys
  , histogram (^) 0 16 is ys
  , histogram (\(a, b) (c, d) -> (a | c, b + d)) (0, 0) 16 is (zip xs ys)
  )
