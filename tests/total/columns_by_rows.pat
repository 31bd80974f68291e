-- fuzz: seed=1 n=100 m=70

-- Rows are combined element by element, in more columns than a work-item has registers; the second in order.
entry columns [n][m] (a: [n][m]f32) (b: [3*m]f32) (rows: [n][3*m]f32) : ([m]f32, [3*m]f32) =
  (reduce (map2 (+)) (replicate m 0) a, reduceSeq (\x y -> map2 (\u v -> u * 0.5 + v) x y) b rows)
