-- fuzz: seed=1 n=2 d=9 h=8 w=12

-- Maxima of windows, one axis after the other, and the sums of windows of these.
entry pools [n][d][h][w]
  (x: [n][d][h][w]f32)
  : [n][(d - 3) / 2 + 1][(h - 2) / 2 + 1][(w - 2) / 2 + 1]f32 =
  let pool1 row = map maximum (slide 2 2 row)
  let along_w vol = map (map pool1) vol
  let along_h vol = map (\plane -> transpose (map pool1 (transpose plane))) vol
  let along_d vol = map (\s -> map2 (map2 (+)) (map2 (map2 max) s[0] s[1]) s[2]) (slide 3 2 vol) in
  map (\vol -> along_d (along_h (along_w vol))) x
