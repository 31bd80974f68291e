-- fuzz: seed=1 n=37
-- Numbers of half precision, whose results are rounded after each operation.
entry arithmetic [n] (xs: [n]f16) (ys: [n]f16) (a: f16) : ([n]f16, [n]f32, [n]i32, [n]bool) =
  let zs = map2 (\x y -> a * x + y / 3) xs ys in
  (map2 max zs (reverse xs),
    map2 (\x y -> f32.f16 x * f32.f16 y) xs ys,
    map (\x -> i32.f16 (floor x)) xs,
    map2 (<) xs ys)
