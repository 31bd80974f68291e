-- fuzz: seed=3 b=2 h=2 t=36 d=11

-- Batches of batches: the rows of a product meet the rows of another array, and then the columns of a third.
entry values [b][h][t][d]
  (P: [b][h][t][t]f32)
  (O: [b][h][t][d]f32)
  (V: [b][h][t][d]f32)
  : [b][h][t][d]f32 =
  map3
    (map3 (\p o v ->
      let s =
        map2
          (\pr r ->
            let g = map (\vr -> sum (map2 (*) r vr)) v
            let c = sum (map2 (*) pr g) in
            map2 (\x y -> x * (y - c)) pr g)
          p
          o in
      map (\r -> map (\c -> sum (map2 (*) r c)) (transpose v)) s))
    P
    O
    V
