-- The sum of the squares of a vector.
entry sumsq [n] (xs: [n]f32) : f32 =
  xs |> map (\x -> x * x) |> reduce (+) 0
