import "../lib/stencil"

-- Sobel's edges: the magnitude of the gradient at each pixel.
-- gen: image=whole:0..256
entry sobel [n] [m] (image: [n][m]u8) : [n][m]f32 =
  let edge w =
    let across = weighted [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]] w
    let down = weighted [[-1, -2, -1], [0, 0, 0], [1, 2, 1]] w
    in sqrt (across * across + down * down)
  in map_2d edge (windows_2d 1 (map_2d f32.u8 image))
