import "../lib/stencil"

-- An image where each pixel is the mean of those up to `r` rows and columns away, weighted by Gauss's bell of width `sigma`.
-- gen: r=const:2 sigma=const:1.5 image=uniform:0..255
entry gaussian_blur [r] [n] [m] (r: i32) (sigma: f32) (image: [n][m]f32) : [n][m]f32 =
  let bell d = exp (-0.5 * f32.i32 (d * d) / (sigma * sigma))
  let weights = tabulate_2d (2 * r + 1) (2 * r + 1) (\i j -> bell (i - r) * bell (j - r))
  let total = sum (join weights)
  in map_2d (\w -> weighted weights w / total) (windows_2d r image)
