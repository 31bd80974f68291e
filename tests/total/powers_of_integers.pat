-- fuzz: seed=1 n=101
-- gen: ks=uniform:0..70
entry powers [n] (xs: [n]i32) (ks: [n]i32) : ([n]i32, [n]i64, [n]u8, [n]i64) =
  ( map2 (**) xs ks
  , map2 (\x k -> (i64.i32 x + 3) ** i64.i32 k) xs ks
  , map (\k -> 3 ** u8.i32 k) ks
  , map (\k -> (-3) ** i64.i32 k) ks
  )
