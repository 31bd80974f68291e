-- fuzz: seed=1 n=20 m=33

-- Changed elements, rows, columns and parts.
entry updates [n] [m] (xs: [n]f32) (A: [n][m]f32) (i: i32) (j: i32)
  : ([n]f32, [n]f32, [n]f32, [n]f32, [n][m]f32, [n][m]f32, [n][m]f32, [n][m]f32) =
  let k = i % n
  let row = map (* 2) A[k]
  in
  ( xs with [k] <- 1.5
  , xs with [1:3] <- [c 1, c 2]
  , xs with [::2] <- xs[1::2]
  , xs with [0] <- 1 with [n - 1] = 2
  , A with [k] <- row
  , A with [k, j % m] <- xs[0]
  , A with [:, j % m] <- xs
  , A with [2:n - 2, ::-1] <- A[:n - 4, :]
  )

def c (x: f32) = x + 0.5
