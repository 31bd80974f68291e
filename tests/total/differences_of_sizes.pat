-- fuzz: seed=1 n=7 m=4 k=2
-- Where a small pattern lies best in an image: lengths are products of sums of the same sizes.
entry differences_of_sizes [n][m][k]
  (image: [n][n]f32)
  (pattern: [m][m]f32)
  (line: [2 * k + 1]f32)
  : (i32, [(2 * k + 1) * (2 * n + 1)]f32) =
  let scores =
    tabulate_2d (n - m + 1) (n - m + 1) (\i j ->
      sum
        (map2
          (\row other -> sum (map2 (\a b -> abs (a - b)) row[j:j + m] other))
          image[i:i + m]
          pattern))
  let all = flatten (map (\a -> map (\b -> a * b) (replicate (2 * n + 1) 2.0)) line) in
  (argmin (flatten scores), all)
