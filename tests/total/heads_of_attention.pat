-- fuzz: seed=1 h=2 n=40 d=6

-- A batch of two products with a row operation between them.
entry heads [h][n][d] (Q: [h][n][d]f32) (K: [h][n][d]f32) (V: [h][n][d]f32) : [h][n][d]f32 =
  map3 (\q k v ->
    let s = map (\qi -> map (\kj -> reduce (+) 0 (map2 (*) qi kj)) k) q
    let p = map (\r ->
      let mx = reduce max f32.lowest r
      let e = map (\x -> exp (x - mx)) r
      let t = reduce (+) 0 e
      in map (\x -> x / t) e) s
    in map (\pi -> map (\vc -> reduce (+) 0 (map2 (*) pi vc)) (transpose v)) p) Q K V
