-- fuzz: seed=1 n=37 m=22

-- Reductions of the prelude, of floats and of integers.
entry summaries [n] [m] (xs: [n]f32) (is: [m]i32)
  : ((f32, f32, f32), (i32, i32), (bool, bool, i32), (i32, i32), (i32, i32, i32)) =
  ( (sum xs, maximum xs, minimum xs)
  , (product (map (\i -> i % 3 + 3) is), maximum is)
  , (any (> 0.5) xs, all (< 100) is, count (> 0) xs)
  , (find (\i -> i % 5 == 0) is, find (> 1000000) xs)
  , (argmin xs, argmax xs, argmax is)
  )
