-- fuzz: seed=1 n=5

-- Lengths that are equal as polynomials, each written in another way.
entry lengths_factor [n] (xs: [n * n + 7 * n + 12]f32) (ys: [n + 3]f32) (zs: [n + 4]f32) : [n + 3]f32 =
  let rows = split (n + 4) xs
  in map2 (\y row -> y + reduce (+) 0 (map2 (*) row zs)) ys rows
