-- fuzz: seed=1 n=18 m=21 k=3

-- A row that is repeated, and an array of three dimensions by index.
entry repeated [n] [m] [k] (A: [n][m]f32) (xs: [m]f32) : ([k][m]f32, [n][m]f32, [n][m][k]i32) =
  ( replicate k (map (* 2) xs)
  , map2_2d (+) A (replicate n xs)
  , tabulate_3d n m k (\i j l -> i + j * l)
  )
