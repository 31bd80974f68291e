-- fuzz: seed=1 n=0

entry chosen_result [n] (a0: [n]f32) : f32 =
  select
    (reduce max f32.lowest a0 > 3)
    (reduce min f32.highest (replicate n 1f32))
    (reduceSeq (\x y -> x) 1.0 a0)
