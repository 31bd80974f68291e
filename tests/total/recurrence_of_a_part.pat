-- fuzz: seed=1 n=5 m=11

-- The loops store some of the elements: the others stay as they were. One reads what the last two steps stored, one reads ahead,
-- and one stores under a condition.
entry parts [n] [m] (U: [n][m]f32) : ([n][m]f32, [n][m]f32, [n][m]f32, [n][m]f32) =
  unzip4 (map (\d ->
    let a = loop a = d for i < m - 3 do a with [i + 2] <- d[i] + 0.5 * a[i + 1] - 0.25 * a[i]
    let b = (loop (b, s) = (d, 1f32) for i < m - 4 do
      let v = b[m - 2 - i] + 0.5 * s
      in (b with [m - 3 - i] <- v, v)).0
    let c = loop c = d for i < m - 1 do if d[i] > 0 then c with [i] <- c[i + 1] else c
    let e = loop e = replicate m 2f32 for i < m do
      e with [i] <- if i == 0 then d[0] else e[i - 1] * 0.5 + d[i]
    in (a, b, c, e)) U)
