-- The squared distances of the points of one set from those of another.
entry pairwise [n][m][d] (xs: [n][d]f32) (ys: [m][d]f32) : [n][m]f32 =
  map (\p -> map (\q -> reduce (+) 0 (map2 (\a b -> (a - b) * (a - b)) p q)) ys) xs
