-- fuzz: seed=1 n=37 k=13 m=29
-- A product that goes on with a value for each row, a value for each column, and two matrices.
entry sums [n][k][m]
  (A: [n][k]f32)
  (B: [k][m]f32)
  (scale: [n]f32)
  (bias: [m]f32)
  (M: [n][m]f32)
  (N: [n][m]f32)
  : [n][m]f32 =
  map4
    (\row s ms ns ->
      map4 (\col b v w -> max 0 (s * sum (map2 (*) row col) + b) * v + w) (transpose B) bias ms ns)
    A
    scale
    M
    N
