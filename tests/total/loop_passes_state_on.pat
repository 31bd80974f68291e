-- fuzz: seed=7 n=71

-- Parts of the state that a step passes on, exchanges, or never changes; the inputs keep their values.
entry passed_on [n] (A: [n][n]f32) (x: [n]f32) (y: [n]f32) : ([n][n]f32, [n]f32, [n]f32, [n]f32) =
  let (B, u, v) = loop (B, u, v) = (A, x, y) for k < n do
    (B, v with [k] <- sum u, map (\row -> 0.01 * sum (map2 (*) row u)) B)
  in (B, u, v, map2 (+) x A[0])
