-- fuzz: seed=1 n=2 c=3 o=5 h=9 w=11
-- What follows a convolution, outside of it: a bias for each channel, a choice, a residual with the image inside of a name.
entry epilogue [n][c][o][h][w]
  (x: [n][c][h + 2][w + 2]f32)
  (weight: [o][c][3][3]f32)
  (bias: [o]f32)
  (res: [n][o][h][w]f32)
  : [n][o][h][w]f32 =
  let conv image filter =
    tabulate_2d h w (\i j ->
      sum
        (map2 (\plane f -> sum (flatten (map2 (map2 (*)) plane[i:i + 3, j:j + 3] f))) image filter)) in
  map2
    (\image r ->
      let scaled = map (map (map (* 0.5))) image
      let y = map2 (\filter b -> map (map (+ b)) (conv scaled filter)) weight bias in
      map2 (map2 (map2 (\v s -> if v > 0 then v + s else 0.1 * v))) y r)
    x
    res
