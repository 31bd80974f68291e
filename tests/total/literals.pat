-- fuzz: seed=1 n=41

-- Arrays written out: weights, computed elements, rows, and arrays as elements.
entry literals [n] (xs: [n]f32) (c: f32)
  : ([n - 2]f32, [5]f32, [2][3]f32, [n][2]f32, [3][n]f32, [3](f32, i32)) =
  let weights = [0.25, 0.5, 0.25]
  let total = reduce (+) 0 xs
  in
  ( map (\w -> reduce (+) 0 (map2 (*) w weights)) (slide 3 1 xs)
  , [c, total, c * 2, 4, xs[0]]
  , [[1, c, 0], [0, 1, total]]
  , map (\x -> [x, x * x]) xs
  , [xs, xs[::-1], map (+ c) xs]
  , [(c, 1), (2, 0), (total, -1)]
  )
