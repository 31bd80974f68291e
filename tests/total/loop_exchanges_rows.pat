-- fuzz: seed=5 n=8 m=66
-- gen: A=normal ps=whole:0..7

-- Both rows are read before either of them is stored.
entry exchanged [n] [m] (A: [n][m]f32) (ps: [n]i32) : ([n][m]f32, [n]f32) =
  loop (A, sums) = (A, replicate n 0.0) for k < n do
    let p = (ps[k] % n + n) % n
    let (a, b) = (A[k], A[p])
    in ((A with [k] <- reverse b) with [p] <- map (* 0.5) a, sums with [k] <- sum A[k])
