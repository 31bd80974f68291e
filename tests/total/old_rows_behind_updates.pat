-- fuzz: seed=1 b=3 n=7

-- A step reads what it has updated as it was before.
entry updated [b][n] (As: [b][n][n]f32) : [b][n][n]f32 =
  map
    (\A ->
      loop A for p < n do
        let B = A with [p] <- map (* 2) A[(p + 1) % n]
        let C = B with [:, p] <- map (+ 1) A[:, p] in
        map2_2d (\x y -> x - 0.5 * y) C A)
    As
