-- fuzz: seed=1 n=2 c=4 o=5 h=8 w=9
-- Gradients of a convolution: reads behind counters that are subtracted, which are tested to lie in an array.
entry f [n][c][o][h][w]
  (dy: [n][o][h][w]f32)
  (wt: [o][c][3][3]f32)
  : ([n][c][h][w]f32, [n][c][h][w]f32) =
  let backward =
    tabulate n (\b ->
      tabulate c (\ic ->
        tabulate_2d h w (\y x ->
          sum
            (tabulate o (\oc ->
              sum
                (flatten
                  (tabulate_2d 3 3 (\ky kx ->
                    let yy = y + 1 - ky
                    let xx = x + 1 - kx in
                    if yy >= 0 && yy < h && xx >= 0 && xx < w
                    then dy[b, oc, yy, xx] * wt[oc, ic, ky, kx]
                    else 0))))))))
  let forward =
    tabulate n (\b ->
      tabulate c (\ic ->
        tabulate_2d h w (\y x ->
          loop s = 0 for oc < o do
            loop s = s for ky < 3 do
              loop s = s for kx < 3 do
                let yy = y + 2 * ky - 2
                let xx = x + kx - 1 in
                if 0 <= yy && h > yy && -1 < xx && xx <= w - 1
                then s + dy[b, oc, yy, xx] * wt[oc, ic, ky, kx]
                else s))) in
  (backward, forward)
