-- Every element of a vector multiplied by a scalar (BLAS scal).
entry scal [n] (alpha: f32) (xs: [n]f32) : [n]f32 =
  map (* alpha) xs
