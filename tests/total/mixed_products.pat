-- fuzz: seed=1 n=72 m=80 k=24

-- Products of f16 and i8, the latter with a factor for each row.
entry mixed_products [n][m][k] (x: [n][k]f16) (w: [m][k]i8) (by: [m]f32) : [n][m]f32 =
  map (\r -> map2 (\c f -> f * sum (map2 (\a b -> f32.f16 a * f32.i8 b) r c)) w by) x
