-- fuzz: seed=1 b=3 t=37 d=33 f=20

-- Residual connections in a batch: sums of matrices with products of the batch's elements and one matrix.
def mm [a][b][c] (x: [a][b]f32) (y: [b][c]f32) : [a][c]f32 =
  map (\r -> map (\c -> sum (map2 (*) r c)) (transpose y)) x

entry residual [b][t][d][f]
  (R: [b][t][d]f32)
  (A: [b][t][f]f32)
  (B: [b][t][f]f32)
  (U: [f][d]f32)
  (W: [f][d]f32)
  : [b][t][d]f32 =
  map3 (\r a b -> map2 (map2 (+)) (map2 (map2 (-)) r (mm a U)) (mm b W)) R A B
