-- fuzz: seed=1 n=8
-- The exponential of a matrix, (1 + a/4096) ** 4096: rounding errors double with each square.
entry power [n] (a: [n][n]f32) : [n][n]f32 =
  let p = tabulate_2d n n (\i j -> if i == j then 1 + a[i, j] / 4096 else a[i, j] / 4096) in
  loop p = p for _ < 12 do map (\r -> map (\c -> sum (map2 (*) r c)) (transpose p)) p
