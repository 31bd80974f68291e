-- fuzz: seed=1 b=7 n=13
-- gen: lo=normal di=normal up=normal rhs=normal

-- The Thomas algorithm in rows: two arrays are updated in each step, and read at the place before.
entry tridiag [b] [n] (lo: [b][n]f32) (di: [b][n]f32) (up: [b][n]f32) (rhs: [b][n]f32) : [b][n]f32 =
  map4 (\a d c r ->
    let (cp, dp) = loop (cs, ds) = (replicate n 0.0f32, replicate n 0.0f32) for i < n do
      let pc = if i > 0 then cs[i - 1] else 0.0
      let pd = if i > 0 then ds[i - 1] else 0.0
      let m = 1.0 / (4.0 + d[i] - a[i] * pc)
      in (cs with [i] <- c[i] * m, ds with [i] <- (r[i] - a[i] * pd) * m)
    in loop x = replicate n 0.0f32 for t < n do
      let i = n - 1 - t
      let nx = if t > 0 then x[i + 1] else 0.0
      in x with [i] <- dp[i] - cp[i] * nx) lo di up rhs
