-- fuzz: seed=1 n=37
-- gen: steps=const:4

-- The number of steps is known to the host alone. Both parts of the state are results.
entry waves [n] (steps: i32) (u: [n]f32) (v: [n]f32) : ([n]f32, [n]f32) =
  loop (u, v) for k < steps do
    (map2 (\a b -> 0.5 * (a + b)) (rotate 1 u) v, map2 (-) v (rotate (-1) u))
