-- fuzz: seed=1 b=2 c=3 o=5 h=7 w=8
-- A convolution in nested loops with literal counts, with a border, and sums of loops.
entry f [b][c][o][h][w]
  (x: [b][c][h][w]f32)
  (wt: [o][c][3][3]f32)
  : ([b][o][h][w]f32, [b](f32, f32)) =
  let conv =
    map
      (\img ->
        let planes = map (pad_2d 1 1 0) img in
        map
          (\k ->
            tabulate_2d h w (\y x ->
              loop s = 0 for ic < c do
                loop s = s for ky < 3 do
                  s + (loop t = 0 for kx < 3 do t + planes[ic, y + ky, x + kx] * k[ic, ky, kx])))
          wt)
      x
  let both =
    map
      (\img ->
        loop (s, m) = (1, f32.lowest) for ic < c do
          loop (s, m) = (s, m) for y < h do
            loop (s, m) = (s, m) for x < w do
              if img[ic, y, x] > 0 then (s + img[ic, y, x], max m img[ic, y, x]) else (s, m))
      x in
  (conv, both)
