import "../lib/stencil"

-- One sweep of Jacobi's method in two dimensions: the mean of each element and its eight neighbours.
-- gen: xs=uniform
entry jacobi2d9 [n] [m] (xs: [n][m]f32) : [n][m]f32 =
  map_2d (\w -> sum (join w) / 9) (windows_2d 1 xs)
