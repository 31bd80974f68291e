-- fuzz: seed=1 n=9 m=99

-- Two sweeps over the inner elements of each row: no vector begins where they begin.
entry within [n][m] (U: [n][m]f32) : [n][m]f32 =
  map
    (\r ->
      let ps = scanSeq (\p x -> 0.5 * p + x) 0 r[1:m - 1]
      let qs = scanSeq (\q p -> 0.25 * q + p) 1 (reverse ps) in
      [1] ++ reverse qs ++ [1])
    U
