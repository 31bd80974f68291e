-- fuzz: seed=8 n=9 m=70
-- gen: A=normal stop=whole:0..9

-- A part of the rows changes, in a loop that may have no step; each row is read by its own work-items alone.
entry where [n] [m] (A: [n][m]f32) (stop: i32) : ([n][m]f32, [n][m]f32) =
  let B = loop A = A for k < stop do
    let s = map (\row -> sum row) A
    in map2 (\i row -> map (\x -> if i < k then x else x - 0.1 * s[i]) row) (iota n) A
  let (C, _) = loop (A, k) = (A, 0) while k < stop do
    (A with [k] <- map (+ sum A[0]) A[k], k + 1)
  in (B, C)
