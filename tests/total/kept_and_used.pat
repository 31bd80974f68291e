-- fuzz: seed=1 n=1003

-- A result that a further kernel reads is stored once.
entry kept_and_used [n] (xs: [n]f32) : ([n]f32, f32) =
  let ys = map (\x -> x * x + 1) xs in (ys, reduce (+) 0 ys)
