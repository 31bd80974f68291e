-- fuzz: seed=1 n=33

entry z_powers_of_constants [n] (xs: [n]f32) : [n](f32, f32, f32, f32) =
  let h = 1 / 256f32
  in map (\x -> (x / (f32.pi * h ** 8), x ** 16 - x ** 7, sqrt 2f32 * x ** 5, exp 1f32 + log (h * 3) * x ** 17)) xs
