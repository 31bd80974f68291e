-- fuzz: seed=7 n=3
-- gen: b=whole:-4..5
entry random [n] (b: [n]i32) : [n][0](f32, i32) =
  (loop ((x, i) = (transpose (replicate 0 (replicate n (1.0, 2))), 0)) while i < 2 do
    (x with [:, min i i] = map (\e -> (1.0, e)) b, i + 1)).0
