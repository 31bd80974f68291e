-- A vector times a scalar plus another vector, y = alpha*x + y (BLAS axpy).
entry axpy [n] (alpha: f32) (xs: [n]f32) (ys: [n]f32) : [n]f32 =
  map2 (\x y -> alpha * x + y) xs ys
