-- fuzz: seed=1 n=6 m=9

-- The rest of the state is a result, too.
entry totals [n] [m] (U: [n][m]f32) (V: [n][m]i32) : ([n][m]f32, [n]f32, [n]i32) =
  let rs = map2 (\u v ->
    let (out, y, k, _) = loop (out, y, k, z) = (replicate m 0f32, u[0], 3i32, 0f32) for i < m do
      let y = 0.5 * y + u[i]
      let k = k * 3 + v[i]
      in (out with [i] <- y - z, y, k, y)
    in (out, y, k)) U V
  in (map (.0) rs, map (.1) rs, map (.2) rs)
