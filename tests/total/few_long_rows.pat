-- fuzz: seed=1 n=2 h=128 w=257
-- Normalised matrices, of which each would be the work of one group.
entry f [n][h][w] (x: [n][h][w]f32) (scale: [h][w]f32) : [n][h][w]f32 =
  map
    (\m ->
      let v = flatten m
      let mean = sum v / f32.i32 (h * w)
      let var = sum (map (\e -> (e - mean) ** 2) v) / f32.i32 (h * w) in
      map2 (map2 (\e s -> (e - mean) * rsqrt (var + 1e-5) * s)) m scale)
    x
