-- fuzz: seed=1 m=64 n=33
-- Products of which one matrix is zero above a diagonal, below it, or outside of a band.
entry f [m][n] (A: [m][m]f32) (B: [m][n]f32) : ([m][n]f32, [m][n]f32, [m][n]f32) =
  let product =
    \keep ->
      map2
        (\i row ->
          map
            (\col -> sum (map3 (\k a b -> if keep i k then a * b else 0) (iota m) row col))
            (transpose B))
        (iota m)
        A in
  (product (\i k -> k <= i), product (\i k -> k > i), product (\i k -> k <= i && k + 5 > i))
