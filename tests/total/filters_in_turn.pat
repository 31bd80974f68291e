-- fuzz: seed=1 c=5 n=80 s=3

-- Recursive filters that follow each other: a step of the loop updates the rows in place.
entry filters [c][n][s] (xs: [c][n]f32) (q: [s]f32) : [c][n]f32 =
  map (\channel -> loop ys = channel for a in q do scanSeq (\y x -> x + 0.25 * a * y) 0 ys) xs
