-- fuzz: seed=1 batch=9 n=6

-- The inner loops end at the counter of the outer loop, and begin behind it.
entry substitutions_of_batch [batch][n]
  (Ls: [batch][n][n]f32)
  (bs: [batch][n]f32)
  : ([batch][n]f32, [batch]i32) =
  unzip
    (map2
      (\L b ->
        let x =
          loop x = b for i < n do
            let s = loop s = x[i] for j < i do s - L[i, j] * x[j] in x with [i] <- s / 4
        let (_, count) = loop (s, count) = (0f32, 0) while count < n do (s + x[count], count + 1) in
        (loop y = x for t < n do
            let i = n - 1 - t
            let s = loop s = y[i] for j < t do s - L[n - 1 - j, i] * y[n - 1 - j] in
            y with [i] <- s / 4,
          count))
      Ls
      bs)
