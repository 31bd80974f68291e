-- fuzz: seed=1 n=37

-- The parts of a state, each computed from both; and results of names that are needed as a whole, too.
entry results_of_loop [n] (p: [n]f32) (v: [n]f32) (k: f32) : ([n]f32, [n]f32, [n]f32, [n](f32, f32)) =
  let (p, v) = loop (p, v) = (p, v) for i < 5 do
      (map2 (\p v -> p + k * v) p v, map2 (\p v -> 0.5 * v - k * p) p (rotate 1 v))
  let (s, t) = unzip (map2 (\x y -> (x + y, x * y)) p v)
  in (s, map2 (-) (rotate 1 s) t, map (* 2) p, reverse (map2 (\x y -> (x, y)) v t))
