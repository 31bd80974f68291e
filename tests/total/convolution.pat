-- fuzz: seed=1 b=2 ci=2 co=5 h=19 w=23
-- A layer of a convolution: many channels, bias, rectified.
entry conv2d [b][ci][co][h][w] (x: [b][ci][h+2][w+2]f32) (wt: [co][ci][3][3]f32) (bias: [co]f32) : [b][co][h][w]f32 =
  map (\img ->
    map2 (\k bi ->
      tabulate_2d h w (\i j ->
        let s = sum (map2 (\plane kern -> sum (tabulate 3 (\di -> sum (tabulate 3 (\dj -> plane[i + di, j + dj] * kern[di, dj]))))) img k)
        in max 0 (s + bi))) wt bias) x
