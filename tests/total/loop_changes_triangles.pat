-- fuzz: seed=2 n=7
-- gen: A=whole:0..9 B=whole:0..9 C=whole:0..9

-- What is stored and what is read are two triangles, or overlap in the diagonal, or in a row that changes.
entry triangles [n] (A: [n][n]i32) (B: [n][n]i32) (C: [n][n]i32) : ([n][n]i32, [n][n]i32, [n][n]i32) =
  let f = \c A k -> map2 (\i row -> map2 (\j x -> if c i j k then (x + k * A[j, i]) % 97 else x) (iota n) row) (iota n) A
  let A = loop A = A for k < n do f (\i j _ -> i > j) A k
  let B = loop B = B for k < n do f (\i j _ -> i >= j) B k
  let C = loop C = C for k < n do
    map2 (\i row -> map2 (\j x -> if i >= k && j > k then (x + 3 * C[i, k] + C[k, j]) % 89 else x) (iota n) row) (iota n) C
  in (A, B, C)
