-- fuzz: seed=7 b=4 n=6
-- gen: xss=normal ks=whole:-3..9

-- Indices outside the array have no effect, in one dimension and in two.
entry outside [b] [n] (xss: [b][n]f32) (ks: [b]i32) : ([b][n]f32, [b][2][n]f32) =
  map2 (\xs k -> loop (ys, yss) = (xs, [xs, xs]) for i < n do
    (ys with [k + i] <- 1.0, yss with [k - i, k] <- ys[i])) xss ks |> unzip
