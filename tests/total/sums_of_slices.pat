-- fuzz: seed=1 n=37 m=22

-- A stencil by slices, and reductions of columns and of strided parts.
entry heat [n] [m] (A: [n][m]f32) : ([n - 2][m - 2]f32, [m]f32, f32) =
  let inner =
    map3 (map3 (\up down here -> (up + down) * 0.25 + here * 0.5)) A[:n - 2, 1:m - 1] A[2:, 1:m - 1]
      A[1:n - 1, 1:m - 1]
  let sides = map2 (+) A[1:n - 1, :m - 2][0] A[1:n - 1, 2:][n - 3]
  in
  ( inner
  , generate m (\j -> reduce (+) 0 A[:, j])
  , reduce (+) 0 (map abs A[::37, 0]) + reduce max 0 sides
  )
