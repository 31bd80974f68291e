-- fuzz: seed=1 b=2 n=5 k=6 m=7

-- Scores that are normalised where they are computed: the reductions leave the map and need the name of the row.
entry scores [b][n][k][m] (X: [b][n][k]f32) (W: [m][k]f32) : [b][n][m]f32 =
  map
    (map (\x ->
      let r = map (\w -> sum (map2 (*) w x)) W
      let e = map (\v -> exp (v - maximum r)) r in
      map (\v -> v / sum e) e))
    X
