-- fuzz: seed=1 n=4100 d=5
-- A long product with a factor of the row, and sums of columns with a factor.
entry product_with_factor [n] [d] (X: [n][d]f32) (w: [d]f32) : ([d][d]f32, [d]f32) =
  let gram = map2 (\a s -> map (\b -> s * sum (map2 (*) a b)) (transpose X)) (transpose X) w
  in (gram, map2 (\c s -> s * sum c) (transpose X) w)
