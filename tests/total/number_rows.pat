-- fuzz: seed=1 n=512 h=64
-- A product whose rows have a plain number of elements.
entry f [n][h] (x: [n][16][2]f32) (w: [h][32]f32) : [n][h]f32 =
  map (\r -> let e = flatten r in map (\c -> sum (map2 (*) e c)) w) x
