-- fuzz: seed=1 n=4 m=0

-- There are no elements, and so no steps.
entry nothing [n] [m] (U: [n][m]f32) : ([n][m]f32, [n]f32) =
  unzip (map (\d -> loop (out, y) = (replicate m 0f32, 1f32) for i < m do
    let y = d[i] + 0.5 * y
    in (out with [i] <- y, y)) U)
