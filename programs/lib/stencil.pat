-- The windows around the elements of a matrix, up to `r` rows and columns away. Outside of the matrix is what is nearest inside.
def windows_2d [r] [n] [m] 't (r: i32) (xs: [n][m]t) : [n][m][2*r + 1][2*r + 1]t =
  pad_2d r r clamp xs |> slide_2d (2 * r + 1) 1

-- The same in three dimensions.
def windows_3d [r] [n] [m] [k] 't (r: i32) (xs: [n][m][k]t) : [n][m][k][2*r + 1][2*r + 1][2*r + 1]t =
  pad_3d r r clamp xs |> slide_3d (2 * r + 1) 1

-- The elements of a window, each times its weight, added up.
def weighted [n] [m] (weights: [n][m]f32) (window: [n][m]f32) : f32 =
  map2 (map2 (*)) weights window |> join |> sum
