-- Four maps in a row over a vector, which one kernel computes without intermediate arrays.
entry chain [n] (xs: [n]f32) : [n]f32 =
  xs |> map (* 2) |> map (+ 1) |> map sqrt |> map (\x -> x * x - x)
