-- fuzz: seed=1 n=1009
-- Components that an operator combines without each other: a sum, a greatest element with its place, and a flag.
-- gen: is=whole:-2..40 xs=whole:-20..20
entry groups [n] (is: [n]i32) (xs: [n]f32) : ([37](f32, (f32, i32), bool), [7](i16, u8)) =
  ( histogram (\(s, m, f) (t, o, g) -> (s + t, if m.0 > o.0 || (m.0 == o.0 && m.1 < o.1) then m else o, f || g))
      (0, (f32.lowest, i32.highest), false) 37 is (map2 (\x i -> (x, (x, i), x > 15)) xs (iota n))
  , histogram (\a b -> (max a.0 b.0, min a.1 b.1)) (i16.lowest, u8.highest) 7 is
      (map (\x -> (i16.f32 x, u8.f32 (abs x))) xs)
  )
