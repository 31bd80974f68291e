import "../lib/stencil"

-- The inverse length of the gradient at each element, from the differences to its four neighbours.
-- gen: xs=uniform
entry gradient [n] [m] (xs: [n][m]f32) : [n][m]f32 =
  let inverse w =
    let square i j = (w[1, 1] - w[i, j]) * (w[1, 1] - w[i, j])
    in 1 / sqrt (0.0001 + square 0 1 + square 2 1 + square 1 0 + square 1 2)
  in map_2d inverse (windows_2d 1 xs)
