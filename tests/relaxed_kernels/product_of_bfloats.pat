-- fuzz: seed=1 n=33 m=18 k=40
-- A product of matrices of `bf16` numbers that are converted first, with sums of single precision.
entry f [n][m][k] (A: [n][k]bf16) (B: [m][k]bf16) (bias: [m]f32) : [n][m]bf16 =
  let X = map (map f32.bf16) A
  let Y = map (map f32.bf16) B in
  map (\row -> map2 (\col b -> bf16.f32 (max 0 (b + reduce (+) 0 (map2 (*) row col)))) Y bias) X
