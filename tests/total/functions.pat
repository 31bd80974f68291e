-- fuzz: seed=1 n=203
entry functions [n] (xs: [n]f32) (ys: [n]f64) : ([n]f32, [n]f32, [n]f32, [n]f64, [n]f64, [n]bool) =
  let small x = clamp x (-0.75) 0.75
  let inner x = asin (small x) + acos (small x) * atanh (small x)
  in
  ( map (\x -> inner x + sinh (clamp x (-3) 3) / cosh (clamp x (-3) 3) - tanh x) xs
  , map (\x -> asinh x + acosh (1.5 + abs x) + cbrt x + hypot x 2 + erf x * erfc x) xs
  , map (\x -> exp2 (small x) + exp10 (small x) + expm1 (small x) + log2 (1 + abs x) + log10 (1 + abs x)) xs
  , map (\y -> trunc y + fmod y 0.75 + copysign 3 (y + 0.5) + log1p (abs y)) ys
  , map (\y -> erf y + erfc y + tanh y + exp10 (clamp y (-2) 2)) ys
  , map2 (\x y -> isnan (sqrt (x - 0.5)) != isinf (y / 0)) xs ys
  )
