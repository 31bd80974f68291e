-- fuzz: seed=1 t=257 d=16 f=257
-- A layer that is written row by row: a product reads a row that is computed.
entry layer [t][d][f] (xs: [t][d]f32) (A: [f][d]f32) (bias: [f]f32) : [t][f]f32 =
  map
    (\x ->
      let r = rsqrt (sum (map (\v -> v * v) x) + 0.001)
      let n = map (* r) x in
      map2 (\row b -> max 0 (sum (map2 (*) row n) + b)) A bias)
    xs
