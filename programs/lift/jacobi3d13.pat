import "jacobi3d7"

-- One sweep of Jacobi's method in three dimensions: the mean of each element and the twelve that are up to two away along an axis.
-- gen: xs=uniform
entry jacobi3d13 [n] [m] [k] (xs: [n][m][k]f32) : [n][m][k]f32 =
  map_3d (\w -> (w[2, 2, 2] + axes 2 1 w + axes 2 2 w) / 13) (windows_3d 2 xs)
