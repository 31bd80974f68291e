-- fuzz: seed=1 n=37 m=22

-- Parts, strides, both directions, columns and blocks.
entry slices [n] [m] (xs: [2 * n]f32) (A: [n][m]f32) (j: i32)
  : ([n - 3]f32, [n]f32, [2 * n]f32, [4]f32, [5]f32, [n]f32, [m]f32, [n - 2][m - 2]f32, [3][2]f32) =
  ( map (* 2) xs[1:n - 2]
  , map2 (+) xs[::2] xs[1::2]
  , map2 (-) xs xs[::-1]
  , xs[1:20:5]
  , xs[30:0:-7]
  , A[:, j % m]
  , map2 (+) A[n / 37, :] A[0]
  , map2 (\r s -> map2 (+) r s) A[1:n - 1, 1:m - 1] A[2:, :m - 2]
  , A[0:5:2, m - 1:m - 5:-2]
  )
