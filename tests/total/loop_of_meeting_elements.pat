-- fuzz: seed=1 n=37

-- The elements meet: by a captured element, by a reduction, by a shift.
entry mixed [n] (xs: [n]f32) : ([n]f32, [n]f32, [n]f32) =
  (loop (x = xs) for s < 4 do map (\v -> v * 0.5 + x[0]) x,
   loop (x = xs) for s < 4 do let m = reduce max f32.lowest x in map (\v -> v - m) x,
   loop (x = xs) for s < 4 do map2 (+) x (rotate 1 x))
