-- fuzz: seed=1 n=61
-- gen: is=whole:0..6
-- Zeros of both signs keep their order, and NaN is the greatest.
entry sort_of_specials [n] (is: [n]i32) : [n](f32, i32) =
  let of =
    \i ->
      if i == 0
      then f32.nan
      else if i == 1
      then -f32.inf
      else if i == 2
      then f32.inf
      else if i == 3
      then 0
      else if i == 4
      then -0.0
      else -1 in
  sort_by_key (\(x, _) -> x) (zip (map of is) (iota n))
