-- fuzz: seed=1 n=7

-- Pooling of cells of 2 by 2: the greatest element of each and its place. The place is in memory, and it is divided to
-- find the element in its row.
entry pool [n] (x: [2][2 * n]f32) : ([n]f32, [n]i32) =
  let cells = map flatten (map transpose (split 2 (transpose x)))
  let best = map argmax cells in
  (map2 (\q k -> q[k]) cells best, best)
