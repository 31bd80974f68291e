-- fuzz: seed=1 n=37 m=20

-- The values around an array are results of other patterns: a sum, a row, bins.
-- gen: is=whole:0..n
entry around [n][m] (xs: [n]i32) (rows: [m][n]i32) (is: [m]i32) : ([n + 2]i32, [m + 1][n]i32, [m + 2][n]i32) =
  (pad 1 1 (reduce (+) 0 xs / n) xs,
   pad 1 0 (map (\x -> x * 2) xs) rows,
   pad 0 2 (histogram (+) 0 n is (replicate m 1)) rows)
