-- fuzz: seed=1 n=101

entry shifted [n] (steps: i32) (xs: [n]f32) : [n]f32 =
  loop (x = xs) for s < steps do map2 (\v w -> v * 0.5 + w * 0.25) x (rotate 1 x)
