-- fuzz: seed=1 n=6 l=5 m=7
-- gen: A=whole:0..3 B=whole:0..3

-- An array of the outer loop is built by the inner one, which reads what the outer step before has left.
entry scores [n] [l] [m] (A: [n][l]i32) (B: [n][m]i32) : ([n]i32, i32) =
  let scores = map2 (\a b ->
    let (best, _) = loop (best, row) = (0, replicate (m + 1) 0) for i < l do
      let c = a[i]
      let (row, _, _) = loop (row, diag, left) = (row, 0, 0) for j < m do
        let up = row[j + 1]
        let s = diag + (if c == b[j] then 2 else -1)
        let v = max (max 0 s) (max (up - 2) (left - 2))
        in (row with [j + 1] <- v, up, v)
      in (max best (maximum row), row)
    in best) A B
  in (scores, maximum scores)
