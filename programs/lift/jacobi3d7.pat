import "../lib/stencil"

-- The six neighbours at distance `d` from the centre of a window.
def axes [w] (c: i32) (d: i32) (xs: [w][w][w]f32) : f32 =
  xs[c - d, c, c] + xs[c + d, c, c] + xs[c, c - d, c] + xs[c, c + d, c] + xs[c, c, c - d] + xs[c, c, c + d]

-- One sweep of Jacobi's method in three dimensions: the mean of each element and its six neighbours.
-- gen: xs=uniform
entry jacobi3d7 [n] [m] [k] (xs: [n][m][k]f32) : [n][m][k]f32 =
  map_3d (\w -> (w[1, 1, 1] + axes 1 1 w) / 7) (windows_3d 1 xs)
