-- fuzz: seed=5 b=2 t=40 d=34

-- A batch that gives a product, and what is computed of another one.
def mm [a][b][c] (x: [a][b]f32) (y: [c][b]f32) : [a][c]f32 =
  map (\r -> map (\c -> sum (map2 (*) r c)) y) x

entry both [b][t][d] (X: [b][t][d]f32) (W: [d][d]f32) (U: [d][d]f32) : ([b][t][d]f32, [b][t]f32) =
  let parts = map (\x -> let h = map (map (max 0)) (mm x W) in (mm h U, map (\r -> maximum r) h)) X in
  (map (.0) parts, map (.1) parts)
