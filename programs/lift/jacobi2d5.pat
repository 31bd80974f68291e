import "../lib/stencil"

-- One sweep of Jacobi's method in two dimensions: the mean of each element and its four neighbours.
-- gen: xs=uniform
entry jacobi2d5 [n] [m] (xs: [n][m]f32) : [n][m]f32 =
  map_2d (\w -> 0.2 * (w[1, 1] + w[0, 1] + w[2, 1] + w[1, 0] + w[1, 2])) (windows_2d 1 xs)
