def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)

def softmax [n] (xs: [n]f32) : [n]f32 =
  let most = reduce max f32.lowest xs
  let sum = reduce (+) 0 (map (\x -> exp (x - most)) xs) in
  map (\x -> exp (x - most) / sum) xs

-- The scores of self-attention: queries times keys, scaled, and made weights that add up to one in each row.
entry attention [n][m][d] (Q: [n][d]f32) (K: [m][d]f32) : [n][m]f32 =
  map (\q -> softmax (map (\k -> dot q k / sqrt (f32.i32 d)) K)) Q
