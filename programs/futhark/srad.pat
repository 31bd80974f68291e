import "../lib/stencil"

-- How much diffuses through a place: little where the variation around it is greater than `q0`, that of the whole image.
def coefficient (q0: f32) (w: [3][3]f32) : f32 =
  let x = w[1, 1]
  let (north, south, west, east) = (w[0, 1] - x, w[2, 1] - x, w[1, 0] - x, w[1, 2] - x)
  let gradient = (north * north + south * south + west * west + east * east) / (x * x)
  let laplacian = (north + south + west + east) / x
  let mean = 1 + 0.25 * laplacian
  let q = (0.5 * gradient - laplacian * laplacian / 16) / (mean * mean)
  in clamp (1 / (1 + (q - q0) / (q0 * (1 + q0)))) 0 1

-- Speckle-reducing anisotropic diffusion (Rodinia's SRAD): `steps` steps on an image with values of 0 to 255.
-- gen: steps=const:2 lambda=const:0.5 image=uniform:0..255
entry srad [n] [m] (steps: i32) (lambda: f32) (image: [n][m]f32) : [n][m]f32 =
  let size = f32.i32 n * f32.i32 m
  let total f xss = sum (map f (join xss))
  let diffused =
    loop xss = map_2d (\x -> exp (x / 255)) image for step < steps do
      let mean = total id xss / size
      let variance = total (\x -> x * x) xss / size - mean * mean
      let windows = windows_2d 1 xss
      let cs = map_2d (coefficient (variance / (mean * mean))) windows
      let next w c =
        let x = w[1, 1]
        let flow =
          c[1, 1] * (w[0, 1] - x) + c[2, 1] * (w[2, 1] - x) + c[1, 1] * (w[1, 0] - x) + c[1, 2] * (w[1, 2] - x)
        in x + 0.25 * lambda * flow
      in map2_2d next windows (windows_2d 1 cs)
  in map_2d (\x -> 255 * log x) diffused
