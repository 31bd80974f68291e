-- fuzz: seed=1 n=203
entry bytes [n] (xs: [n]i8) (ys: [n]u8) (zs: [n]i64) : ([n]i8, [n]u8, [n]i64, [n]i32, [n]i32, [n]i64) =
  ( map2 (\x y -> (x << 3 ^ ~x) & x >> (x & 7)) xs (rotate 1 xs)
  , map2 (\x y -> (x << y | y >> 2) ^ mulhi x y) ys (rotate 1 ys)
  , map2 (\x y -> (x << 7 | y >> 9) ^ mulhi (x << 40) (y << 30)) zs (rotate 1 zs)
  , map (\x -> popcount x + clz x + ctz x) xs
  , map (\x -> popcount x + clz x + ctz x) zs
  , scan (^) 0 zs
  )
