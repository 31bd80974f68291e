-- fuzz: seed=1 n=19 m=23 d=21
-- The product of two complex matrices.
entry f [n][m][d] (a: [n][d](f32, f32)) (b: [m][d](f32, f32)) : [n][m](f32, f32) =
  map (\x -> map (\y ->
    ( sum (map2 (\(p, q) (r, s) -> p * r - q * s) x y)
    , sum (map2 (\(p, q) (r, s) -> p * s + q * r) x y))) b) a
