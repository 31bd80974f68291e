-- fuzz: seed=1 n=101
-- Conversions take the nearest integer that there is; that of NaN is 0.
entry conversions [n] (xs: [n]f32) : ([n]i8, [n]u8, [n]i32, [n]u32, [n]i64, [n]u64, [n]i32, [n]bool) =
  let wide = map (\x -> (x - 0.5) * 1e30) xs
  let odd = map (\x -> if x > 0.5 then f32.nan else if x > 0.25 then f32.inf else -f32.inf) xs
  in
  ( map (\x -> i8.f32 (x * 300)) xs
  , map (\x -> u8.f32 (x * 300 - 100)) xs
  , map i32.f32 wide
  , map u32.f32 wide
  , map i64.f32 wide
  , map u64.f32 wide
  , map i32.f32 odd
  , map bool.f32 odd
  )
