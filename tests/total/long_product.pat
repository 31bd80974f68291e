-- fuzz: seed=1 n=2100 d=6

-- A product with few results of long rows, and a matrix beside it: the step of a descent.
entry descent [n][d] (X: [n][d]f32) (y: [n][d]f32) (W: [d][d]f32) : ([d][d]f32, [d][d]f32) =
  let columns = transpose X
  let means = map (\c -> reduce (+) 0 c / f32.i32 n) columns
  let centred = map2 (\c m -> map (\x -> x - m) c) columns means
  let covariance = map (\a -> map (\b -> reduce (+) 0 (map2 (*) a b) / f32.i32 n) centred) centred
  let step =
    map2
      (\a ws -> map2 (\b w -> w - 0.125 * reduce (+) 0 (map2 (*) a b)) (transpose y) ws)
      columns
      W in
  (covariance, step)
