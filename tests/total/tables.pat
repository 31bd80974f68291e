-- fuzz: seed=1 n=70 m=3
-- Weights and twiddle factors that do not depend on the outer maps; a power; a division that could fail, which stays in place.
entry spectra [n][m] (s: f32) (xs: [n][12]f32) (qs: [m]i32) : ([n][5]f32, [n][m][12]f32, [n][m]f32) =
  let wave = \k t -> 2 * f32.pi * f32.i32 (k * t % 12) / 12
  let spectrum = \x ->
    map (\k ->
      let (re, im) = reduce (\(a, b) (c, d) -> (a + c, b + d)) (0, 0)
        (map2 (\v t -> let a = wave k t in (v * cos a, v * sin a)) x (iota 12))
      in sqrt (re * re + im * im)) (iota 5)
  let weighed = \x -> map (\q -> map2 (\v i -> v * exp (-s * s * f32.i32 (i * q))) x (iota 12)) qs
  in (map spectrum xs, map weighed xs,
    map (\x -> map (\q -> exp (f32.i32 (5 / (q * q + 1))) * x[0]) qs) xs)
