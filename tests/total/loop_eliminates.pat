-- fuzz: seed=3 n=9 m=66
-- gen: A=uniform:1..2 L=uniform:0..1 B=normal

-- Elimination and forward substitution: a step reads a row and a column, and changes what is below and to the right.
entry eliminated [n] [m] (A: [n][n]f32) (L: [n][n]f32) (B: [n][m]f32) : ([n][n]f32, [n][m]f32) =
  let LU = loop A = A for k < n do
    let A = A with [:, k] <- map2 (\i x -> if i > k then x / (4.0 + A[k, k]) else x) (iota n) A[:, k]
    in map2 (\i row -> map2 (\j x -> if i > k && j > k then x - 0.1 * A[i, k] * A[k, j] else x) (iota n) row)
         (iota n) A
  let Y = loop B = B for k < n do
    let B = B with [k] <- map (/ (L[k, k] + 2.0)) B[k]
    in map2 (\i row -> if i <= k then row else map2 (\x y -> x - L[i, k] * y) row B[k]) (iota n) B
  in (LU, Y)
