-- fuzz: seed=1 n=50
-- Results of loops of the host that several others read, and a result beside which scalars are computed.
entry loop_result_is_read [n] (xs: [n]f32) (k: i32) : ([n]f32, f32, i32) =
  let ys = loop ys = xs for i < k % 5 do map (\y -> y * 0.5 + 1) ys
  let (zs, _, steps) = loop (zs, ws, s) = (ys, xs, 0) while s < 70 do
    (map2 (\a b -> a + b * 0.01) (rotate 1 zs) ys, map (* 0.5) zs, s + 1)
  in (zs, sqrt (abs (sum (map2 (*) ys zs))), steps * 2)
