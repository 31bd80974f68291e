-- fuzz: seed=1 n=1000

entry standardise [n] (xs: [n]f32) : [n]f32 =
  let mu = reduce (+) 0 xs / f32.i32 n
  let v = reduce (+) 0 (map (\x -> (x - mu) * (x - mu)) xs) / f32.i32 n
  in map (\x -> (x - mu) * rsqrt (v + 1e-5)) xs
