-- fuzz: seed=1 n=6 m=7
-- gen: steps=const:3

-- Each step updates the inner elements of a plane, then its borders, as with slices of NumPy.
entry steps [n][m] (steps: i32) (p: [n + 2][m + 2]f32) (b: [n][m]f32) : [n + 2][m + 2]f32 =
  loop p for k < steps do
    let d = map2 (map2 (-)) p[1:n + 1, 2:] p[1:n + 1, :m]
    let inner =
      tabulate_2d n m (\i j ->
        0.25 * (p[i, j + 1] + p[i + 2, j + 1] + p[i + 1, j] + p[i + 1, j + 2]) - b[i, j] * d[i, j])
    let p = p with [1:n + 1, 1:m + 1] <- inner
    let p = p with [:, 0] <- p[:, 1] in
    p with [0, :] <- p[1, :]
