-- fuzz: seed=1 b=2 t=23 c=33 w=3
-- Two contractions in one element, each a product of its own.
entry gated_convolution [b] [t] [c] [w] (x: [b][t + w - 1][c]f32) (Wa: [c][w][c]f32) (Wg: [c][w][c]f32) (ba: [c]f32) (bg: [c]f32)
  : [b][t][c]f32 =
  let dot win k = sum (map2 (\xs ks -> sum (map2 (*) xs ks)) win k)
  in map (\seq ->
    map (\win -> map4 (\wa wg a g -> (dot win wa + a) / (1 + exp (-(dot win wg + g)))) Wa Wg ba bg) (slide w 1 seq)) x
