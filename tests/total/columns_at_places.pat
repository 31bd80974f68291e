-- fuzz: seed=1 n=7 m=9

-- Rows and columns at places that are counted from a number on, of a padded array; and in reverse.
entry star [n][m] (u: [n][m]f32) (c: [3]f32) : ([n][m]f32, [4]f32) =
  let p = pad_2d 2 2 0 u
  let around i j =
    sum
      (generate 2 (\k ->
        c[k + 1]
          * (p[i + 2, j + 3 + k] + p[i + 2, j + 1 - k] + p[i + 3 + k, j + 2] + p[i + 1 - k, j + 2]))) in
  (tabulate_2d n m (\i j -> c[0] * u[i, j] + around i j),
    generate 4 (\j -> sum (map (\x -> x * x) (transpose u)[j + 3])))
