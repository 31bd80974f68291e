-- fuzz: seed=1 n=6 m=9
-- Windows of rows, of volumes, and a product with windows.
entry f [n] [m] (xs: [n][m + 3]f32) (q: [4]f32) (v: [n + 1][n + 1][n + 1]f32) : ([n][m]f32, [n][n][n]f32) =
  (map (\x -> generate m (\i -> sum (map2 (*) q x[i:i + 4]) - x[i + 1])) xs,
   tabulate_3d n n n (\i j k -> maximum (flatten (flatten v[i:i + 2, j:j + 2, k:k + 2])) - v[i, j, k]))
