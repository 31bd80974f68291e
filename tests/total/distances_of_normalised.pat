-- fuzz: seed=1 n=70 m=37 d=12

-- Both matrices are made of rows that a reduction scales: the tiles of three kernels divide one length.
entry distances [n][m][d] (X: [n][d]f32) (Y: [m][d]f32) : [n][m]f32 =
  let normalise r = let s = rsqrt (reduce (+) 0 (map (\x -> x * x) r) + 0.5) in map (* s) r
  let Xn = map normalise X
  let Yn = map normalise Y
  in map (\x -> map (\y -> 1 - reduce (+) 0 (map2 (*) x y)) Yn) Xn
