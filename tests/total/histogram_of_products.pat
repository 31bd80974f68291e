-- fuzz: seed=1 n=1009
-- gen: is=whole:-2..40 xs=whole:-1..2
-- Products of complex numbers: two words that an operator combines with each other. Powers of two have one word.
entry products [n] (is: [n]i32) (xs: [n](f32, f32)) : ([37](f32, f32), [5]f32) =
  ( histogram (\a b -> (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)) (1, 0) 37 is xs
  , histogram (*) 1 5 is (map (\x -> if x.0 > 0 then 2 else 0.5) xs)
  )
