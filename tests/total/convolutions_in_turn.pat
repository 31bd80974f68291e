-- fuzz: seed=1 b=2 c=9 h=7 w=8 k=10
-- A convolution of each channel, then a product with all channels at each point.
entry convolutions_in_turn [b] [c] [h] [w] [k] (x: [b][c][h][w]f32) (dw: [c][3][3]f32) (pw: [k][c]f32) (pb: [k]f32) : [b][k][h][w]f32 =
  let depthwise img =
    map2 (\plane filt ->
        let padded = pad 1 1 (replicate (w + 2) 0) (map (pad 1 1 0) plane)
        in tabulate_2d h w (\i j ->
             max 0 (sum (tabulate 3 (\di -> sum (tabulate 3 (\dj -> padded[i + di, j + dj] * filt[di, dj])))))))
      img dw
  let pointwise mid =
    map2 (\row bias -> tabulate_2d h w (\i j -> max 0 (bias + sum (map2 (*) row mid[:, i, j])))) pw pb
  in map (\img -> pointwise (depthwise img)) x
