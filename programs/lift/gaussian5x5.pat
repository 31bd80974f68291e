import "../lib/stencil"

let bell = [[2.0, 4, 5, 4, 2], [4, 9, 12, 9, 4], [5, 12, 15, 12, 5], [4, 9, 12, 9, 4], [2, 4, 5, 4, 2]]

-- An image blurred by fixed weights of 5 by 5.
-- gen: image=uniform:0..255
entry gaussian5x5 [n] [m] (image: [n][m]f32) : [n][m]f32 =
  map_2d (\w -> weighted bell w / 159) (windows_2d 2 image)
