-- fuzz: seed=5 b=3 n=6
-- gen: xss=normal

-- Every other element is replaced by one that is computed from its neighbour.
entry strided [b] [n] (xss: [b][2 * n]f32) : [b][2 * n]f32 =
  map (\r -> loop (xs = r) for i < 3 do
     let ys = xs[1::2] in xs with [::2] <- map (* 0.5) ys) xss
