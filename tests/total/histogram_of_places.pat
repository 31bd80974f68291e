-- fuzz: seed=1 n=1009
-- gen: is=whole:-2..40 xs=whole:-20..20
-- The greatest value of each bin and its place: two words that are exchanged together.
entry argmax [n] (is: [n]i32) (xs: [n]f32) : [37](f32, i32) =
  histogram (\a b -> if a.0 > b.0 || (a.0 == b.0 && a.1 < b.1) then a else b) (f32.lowest, i32.highest) 37 is (zip xs (iota n))
