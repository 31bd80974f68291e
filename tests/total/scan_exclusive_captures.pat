-- fuzz: seed=1 n=16 m=20

-- The operator and the initial value depend on the row.
entry rows [n][m] (xs: [n][m]i32) : ([n][m]i32, [n][m]i32) =
  ( map (\r ->
      let k = 7 + abs (r[0] % 5)
      in scan_exclusive (\a b -> (a + b) % k) 0 (map (\x -> abs (x % k)) r)) xs
  , map (\r -> scan_exclusive (+) r[0] r) xs
  )
