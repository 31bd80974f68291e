-- fuzz: seed=1 h=2 n=17 m=19 d=5

-- Heads of attention with a mask that is added to the products: the keys of a head stay whole.
entry masked [h][n][m][d]
  (Q: [h][n][d]f32)
  (K: [h][m][d]f32)
  (V: [h][m][d]f32)
  (mask: [n][m]f32)
  : [h][n][d]f32 =
  map3
    (\q k v ->
      let scores =
        map2 (\x r -> map2 (\y b -> reduce (+) 0 (map2 (*) x y) / sqrt (f32.i32 d) + b) k r) q mask
      let weights =
        map
          (\r ->
            let most = reduce max f32.lowest r
            let e = map (\x -> exp (x - most)) r
            let sum = reduce (+) 0 e in
            map (\x -> x / sum) e)
          scores in
      map (\w -> map (\c -> reduce (+) 0 (map2 (*) w c)) (transpose v)) weights)
    Q
    K
    V
