-- The sum of absolute values of a vector (BLAS asum).
entry asum [n] (xs: [n]f32) : f32 =
  xs |> map abs |> reduce (+) 0
