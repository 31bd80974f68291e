-- fuzz: seed=6 n=5 m=7 k=9
-- gen: steps=whole:0..5

-- Arrays of three and four dimensions are copied: the state of a loop, turned, and in parts.
entry copies_of_rank_three [n] [m] [k] (steps: i32) (a: [n][m][k]f32) (b: [n][m][k][2]i32)
  : ([n][m][k]f32, [m][n][k]f32, [n][m][k][2]i32, [n][k][m]f32) =
  (loop x = a for s < steps do concat x[1:] x[:1] |> map_3d (* 0.5),
   transpose a,
   loop x = b for s < steps do map (map reverse) (rotate 1 x),
   map transpose a)
