-- What a sample of k-space contributes to a voxel.
def sample (x: f32, y: f32, z: f32) (kx: f32, ky: f32, kz: f32, mag: f32) =
  let a = 2 * f32.pi * (kx * x + ky * y + kz * z) in (mag * cos a, mag * sin a)

-- The matrix Q of magnetic resonance imaging (Parboil mri-q), real and imaginary part for each voxel. A sample is
-- its place in k-space and the square of its magnitude.
-- gen: voxels=uniform:-1..1 samples=uniform:-1..1 samples.3=uniform
entry mriq [n][k] (voxels: [n](f32, f32, f32)) (samples: [k](f32, f32, f32, f32)) : [n](f32, f32) =
  map (\v -> samples |> map (sample v) |> reduce (\(a, b) (c, d) -> (a + c, b + d)) (0, 0)) voxels
