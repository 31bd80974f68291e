-- fuzz: seed=1 a=3 b=257 c=2
-- No parts of equal length make up a column, and what lies behind its end is neutral.
entry f [a][b][c] (x: [a][b][c]f32) : [a][c](f32, f32) =
  map (\m -> map (\v -> (minimum (map (+ 1) v), sum (map (* 2) v))) (transpose m)) x
