-- fuzz: seed=1 n=1009
-- Bins in order: the values of a work-item are runs with the same bin. Some are in no bin.
-- gen: is=sorted:-3..45 xs=whole:-20..20
type bar = {first: (i32, f32), last: (i32, f32), high: f32, low: f32, sum: f32}

entry bars [n] (is: [n]i32) (xs: [n]f32) : ([37]bar, [37]i32) =
  let earlier (a: (i32, f32)) (b: (i32, f32)) = if b.0 < a.0 then b else a
  let later (a: (i32, f32)) (b: (i32, f32)) = if b.0 > a.0 then b else a
  let join a b =
    {first = earlier a.first b.first,
      last = later a.last b.last,
      high = max a.high b.high,
      low = min a.low b.low,
      sum = a.sum + b.sum}
  let none = {first = (highest, 0), last = (lowest, 0), high = lowest, low = highest, sum = 0}
  let of i = {first = (i, xs[i]), last = (i, xs[i]), high = xs[i], low = xs[i], sum = xs[i]} in
  (histogram join none 37 is (map of (iota n)),
    histogram (+) 0 37 (map (\i -> i - 3) is) (replicate n 1))
