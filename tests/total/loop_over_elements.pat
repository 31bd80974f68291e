-- fuzz: seed=1 n=19 m=33 k=5

-- Sequential folds of scalars, pairs and arrays over the elements of an array.
entry folds [n] [m] [k] (A: [n][m]f32) (xs: [m]f32) (Ms: [k][n][n]f32) (v: [n]f32)
  : ([n]f32, (f32, i32), [n]f32, f32) =
  ( map (\r -> loop (acc = 0) for x in r do acc * 0.5 + x) A
  , loop ((best, count) = (0, 0)) for x in xs do (if x > best then (x, count + 1) else (best, count))
  , loop (w = v) for M in Ms do map (\r -> 0.1 * reduce (+) 0 (map2 (*) r w)) M
  , loop (acc = 1) for (a, b) in zip xs xs[::-1] do acc * 0.25 + a * b
  )
