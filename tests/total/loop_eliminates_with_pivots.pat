-- fuzz: seed=5 n=8
-- gen: A=whole:-4..4

-- Rows are exchanged before the elimination: the copies that a step makes of its state are the state.
entry pivots [n] (A: [n][n]i32) : ([n][n]i32, [n]i32) =
  loop (A, p) = (A, replicate n 0) for k < n do
    let r = argmax (map2 (\i x -> if i >= k then abs x else -1) (iota n) A[:, k])
    let (a, b) = (A[k], A[r])
    let A = (A with [r] <- a) with [k] <- b
    let l = map2 (\i x -> if i > k then x % 5 else x) (iota n) A[:, k]
    let A = A with [:, k] <- l
    in ( map2 (\i row -> map2 (\j x -> if i > k && j > k then (x - A[i, k] * A[k, j]) % 100 else x) (iota n) row)
           (iota n) A
       , p with [k] <- r )
