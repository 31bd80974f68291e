-- fuzz: seed=1 n=3 m=65 k=5400

-- A product of a few rows, whose long sums are taken in parts, with a factor for each row.
entry few [n][m][k] (x: [n][k]f32) (w: [k][m]f32) (s: [n]f32) : [n][m]f32 =
  map2 (\r f -> map (\c -> f * sum (map2 (\a b -> a - b) r c)) (transpose w)) x s
