-- fuzz: seed=1 n=33 m=18 k=40
-- A product of matrices of half precision that are converted first, with sums of single precision.
entry f [n][m][k] (A: [n][k]f16) (B: [m][k]f16) (bias: [m]f32) : [n][m]f16 =
  let X = map (map f32.f16) A
  let Y = map (map f32.f16) B in
  map (\row -> map2 (\col b -> f16.f32 (max 0 (b + reduce (+) 0 (map2 (*) row col)))) Y bias) X
