-- fuzz: seed=9 n=130

-- One work-item runs both loops; the second one is a table of two dimensions.
entry recurrence [n] (x: [n]f32) : ([n]f32, [4][n]i32) =
  let ys = loop ys = x for k < n do
    ys with [k] <- (if k > 0 then ys[k - 1] * 0.5 + x[k] else x[k])
  let T = loop T = replicate 4 (replicate n 1) for k < n do
    T with [k % 4, k] <- (if k > 4 then T[k % 4, k - 4] + T[(k + 1) % 4, k - 1] else k)
  in (ys, T)
