-- fuzz: seed=1 h=2 g=4 t=701 d=32

-- One query for each head, where g heads share their keys and values: the queries of a group are the few rows of a product.
entry decode [h][g][t][d] (q: [h * g][d]f32) (K: [h][t][d]f32) (V: [h][t][d]f32) : [h * g][d]f32 =
  map2
    (\head qh ->
      let s = map (\k -> sum (map2 (*) qh k)) K[head / g]
      let m = maximum s
      let e = map (\x -> exp (x - m)) s
      let z = sum e in
      map (\c -> sum (map2 (*) e c) / z) (transpose V[head / g]))
    (iota (h * g))
    q
