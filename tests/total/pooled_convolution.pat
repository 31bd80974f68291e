-- fuzz: seed=1 n=2 c=3 o=5 h=4 w=6
-- A convolution whose results a pool reduces, behind views, and whose channels are summed.
entry pooled [n][c][o][h][w]
  (x: [n][c][2 * h + 2][2 * w + 2]f32)
  (weight: [o][c][3][3]f32)
  (bias: [o]f32)
  : [n]f32 =
  let conv image filter =
    tabulate_2d (2 * h) (2 * w) (\i j ->
      sum
        (map2 (\plane f -> sum (flatten (map2 (map2 (*)) plane[i:i + 3, j:j + 3] f))) image filter))
  let pool plane =
    map (\rows -> map (\win -> sum (flatten win) / 4) (split 2 (transpose rows))) (split 2 plane) in
  map
    (\image ->
      sum
        (map2
          (\filter b ->
            sum
              (map (\v -> 1 / (1 + exp (-v))) (flatten (pool (map (map (+ b)) (conv image filter))))))
          weight
          bias))
    x
