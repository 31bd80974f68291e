-- fuzz: seed=1 n=5003
-- More bins than a digit has values: the sort takes two rounds.
-- gen: is=whole:-5..3100 xs=whole:-1..2
entry bysort [n] (is: [n]i32) (xs: [n](f32, f32, f32)) : [3000](f32, f32, f32) =
  histogram (\a b -> (a.0 * b.0, a.0 * b.1 + a.1 * b.0, a.0 * b.2 + a.1 * b.1 + a.2 * b.0)) (1, 0, 0) 3000 is xs
