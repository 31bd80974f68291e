-- fuzz: seed=1 n=36 d=20

-- A product with a bias, an activation in two steps, and two more matrices.
entry layer [n][d] (x: [n][d]f32) (W: [d][d]f32) (b: [d]f32) (keep: [n][d]bool) : [n][d]f32 =
  let lin = map (\r -> map2 (\c bi -> bi + reduce (+) 0 (map2 (*) r c)) (transpose W) b) x
  let act = map (map (max 0)) lin
  in map3 (map3 (\a k xi -> xi + (if k then a * 0.5 else 0))) act keep x
