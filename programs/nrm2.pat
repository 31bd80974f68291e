-- The Euclidean norm of a vector, the square root of the sum of its squares (BLAS nrm2).
entry nrm2 [n] (xs: [n]f32) : f32 =
  sqrt (reduce (+) 0 (map (\x -> x * x) xs))
