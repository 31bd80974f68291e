-- The outer product of two vectors, C[i][j] = x[i]*y[j].
entry outer [n][m] (xs: [n]f32) (ys: [m]f32) : [n][m]f32 =
  map (\x -> map (* x) ys) xs
