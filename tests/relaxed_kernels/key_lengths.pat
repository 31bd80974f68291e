-- fuzz: seed=1 b=3 t=71 d=5
-- Rows of different lengths: weights behind the end are zero, and one loop has an end that data give.
entry f [b][t][d] (q: [b][d]f32) (K: [b][t][d]f32) (V: [b][t][d]f32) (lengths: [b]i32) : [b][d]f32 =
  map4
    (\qi ks vs n ->
      let len = 1 + abs (n % t)
      let s = map2 (\j k -> if j < len then sum (map2 (*) qi k) else f32.lowest) (iota t) ks
      let m = maximum s
      let e = map (\x -> exp (x - m)) s
      let z = sum e in
      map (\col -> sum (map2 (*) e col) / z) (transpose vs))
    q
    K
    V
    lengths
