-- fuzz: seed=1 b=2 n=67

-- Points far from those before: a scalar, an array that is computed, and one that is updated if a condition holds.
entry far [b][n] (ps: [b][n](f32, f32)) : [b][5]i32 =
  map
    (\p ->
      (loop (dist, last, out) = (replicate n 1000f32, 0, replicate 5 0) for k < 5 do
        let (x, y) = p[last]
        let near = map2 (\d (a, c) -> min d ((a - x) * (a - x) + (c - y) * (c - y))) dist p in
        (near, argmax near, if x > 0 then out with [k] <- last else out)).2)
    ps
