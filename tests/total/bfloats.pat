-- fuzz: seed=1 n=37
-- Numbers of 16 bits with the exponents of `f32`, whose results are rounded after each operation.
entry arithmetic [n] (xs: [n]bf16) (ys: [n]bf16) (a: bf16) : ([n]bf16, [n]f32, [n]i32, [n]bool, [n]f16, [n]bf16, [n]bf16) =
  let zs = map2 (\x y -> a * x + y / 3) xs ys in
  (map2 max zs (reverse xs),
    map2 (\x y -> f32.bf16 x * f32.bf16 y) xs ys,
    map (\x -> i32.bf16 (floor x)) xs,
    map2 (<) xs ys,
    map f16.bf16 xs,
    map bf16.f64 (map f64.bf16 ys),
    sort (map exp xs))
