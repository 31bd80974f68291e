-- fuzz: seed=4 n=70 m=66

-- A column in each step, and columns that are not there.
entry scaled [n] [m] (A: [n][m]f32) : [n][m]f32 =
  loop A = A for k < m do
    let s = 1.0 + sum (map (\x -> x * x) A[:, k])
    let A = A with [:, k] <- map (/ s) A[:, k]
    in A with [:, k + m - 2] <- map (+ s) A[:, 0]
