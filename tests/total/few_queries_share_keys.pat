-- fuzz: seed=1 b=2 h=3 g=4 t=129 d=64

-- One query for each head, where g heads share their keys and values: the queries of a group are the few rows of a product.
entry decode [b][h][g][t][d]
  (q: [b][h * g][d]f32)
  (K: [b][h][t][d]f32)
  (V: [b][h][t][d]f32)
  (n: [b]i32)
  : [b][h * g][d]f32 =
  map4
    (\qs ks vs len ->
      map2
        (\head qh ->
          let s =
            map2
              (\j k -> if j < len % (t + 1) then sum (map2 (*) qh k) else f32.lowest)
              (iota t)
              ks[head / g]
          let m = max (-1000) (maximum s)
          let e = map (\x -> exp (x - m)) s
          let z = 1 + sum e in
          map (\c -> sum (map2 (*) e c) / z) (transpose vs[head / g]))
        (iota (h * g))
        qs)
    q
    K
    V
    n
