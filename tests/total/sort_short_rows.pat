-- fuzz: seed=1 n=5 m=17
-- The median of each row.
entry sort_rows [n][m] (xss: [n][m]f32) : ([n][m]f32, [n]f32) =
  (map sort xss, map (\xs -> (sort xs)[m / 2]) xss)
