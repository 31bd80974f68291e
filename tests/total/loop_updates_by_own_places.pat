-- fuzz: seed=6 n=67 m=3
-- gen: xs=whole:0..66 A=whole:0..2

-- The place of an update is an element of what is updated; long and short loops.
entry own_places [n] [m] (xs: [n]i32) (A: [m][n]i32) : ([n]i32, [m][n]i32) =
  let xs = loop xs = xs for k < n do
    let s = sum xs
    in xs with [xs[k]] <- (s + k) % n
  let A = loop A = A for k < m do
    let s = map (\col -> sum col) (transpose A)
    in A with [A[k, 0] % m] <- s
  in (xs, A)
