-- fuzz: seed=1 n=101

-- The loop of the side that is not chosen must not run.
entry either [n] (c: bool) (xs: [n]f32) : ([n]f32, [n]f32) =
  let grow = \v -> loop (y = v) while reduce (+) 0 (map abs y) < 1000000 do map (\a -> a * 2 + 1) y in
  (if c then grow xs else map (+ 1) xs, if c then map (* 3) xs else grow xs)
