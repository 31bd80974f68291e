-- fuzz: seed=1 n=1001 k=3 d=4

-- A product of few long rows, divided by what else was computed of them.
-- gen: weights=uniform:0.1..1
entry means [n][k][d] (weights: [n][k]f32) (x: [n][d]f32) : ([k]f32, [k][d]f32) =
  let all = map (reduce (+) 0) (transpose weights) in
  (all,
    map2 (\r w -> map (\c -> reduce (+) 0 (map2 (*) r c) / w) (transpose x)) (transpose weights) all)
