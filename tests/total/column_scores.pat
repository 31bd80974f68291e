-- fuzz: seed=1 n=1025 d=6

-- Few long columns: each is reduced in parts, by the whole device.
entry scores [n] [d] (X: [n][d]f32) : [n][d]f32 =
  let (means, deviations) = unzip (map (\c ->
    let (s, q) = reduce (\(a, b) (c, d) -> (a + c, b + d)) (0, 0) (map (\x -> (x, x * x)) c)
    let m = s / f32.i32 n
    in (m, sqrt (abs (q / f32.i32 n - m * m) + 0.25))) (transpose X))
  in map (\row -> map3 (\x m s -> (x - m) / s) row means deviations) X
