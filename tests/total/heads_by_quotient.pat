-- fuzz: seed=1 hk=3 g=4 t=19 d=7

-- Heads that share keys and values by the quotient of their number; others by the remainder.
entry heads [hk][g][t][d] (q: [hk * g][d]f32) (ks: [hk][t][d]f32) (vs: [g][t]f32) : [hk * g]f32 =
  map2
    (\head qh ->
      let s = map (\k -> sum (map2 (*) qh k)) ks[head / g]
      let m = maximum s
      let e = map (\x -> exp (x - m)) s in
      sum (map2 (*) e vs[head % g]) / sum e)
    (iota (hk * g))
    q
