-- fuzz: seed=1 b=2 h=3 t=20 d=8

-- Batches of batches of products, and rows of three dimensions.
entry heads [b][h][t][d] (q: [b][h][t][2 * d]f32) (k: [b][h][t][2 * d]f32) (v: [b][h][t][24]f32)
    : [b][h][t][24]f32 =
  let product x y = map (\row -> map (\column -> reduce (+) 0 (map2 (*) row column)) y) x
  let softmax row =
    let m = reduce max f32.lowest row
    let es = map (\x -> exp (x - m)) row
    in map (/ reduce (+) 0 es) es
  let head q k v = product (map softmax (map (map (* 0.25)) (product q k))) (transpose v)
  in map3 (map3 head) q k v
