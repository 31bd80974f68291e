-- fuzz: seed=1 b=2 t=5 d=4

-- Scores with a mask by index, of products that the program computes.
def mm x y = map (\r -> map (\c -> sum (map2 (*) r c)) (transpose y)) x

entry z_dead_product [b] [t] [d] (X: [b][t][d]f32) (Wq: [d][d]f32) (Wk: [d][d]f32) : [b][t][t]f32 =
  map2 (\Q K -> map2 (\i q ->
      let s = map2 (\j k -> if j > i then -1e30 else sum (map2 (*) q k)) (iota t) K
      let m = maximum s
      in map (\v -> v - m) s) (iota t) Q) (map (\x -> mm x Wq) X) (map (\x -> mm x Wk) X)
