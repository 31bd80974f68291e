-- fuzz: seed=3 b=3 n=6
-- gen: xs=whole:0..4 ys=whole:0..4

-- The longest common subsequence: a table of two dimensions is filled element by element.
entry lcs [b] [n] (xs: [b][n]i32) (ys: [b][n]i32) : [b]i32 =
  map2 (\x y -> let t = loop (t = replicate (n + 1) (replicate (n + 1) 0)) for k < n * n do
        let (i, j) = (k / n, k % n)
        let v = if x[i] == y[j] then t[i, j] + 1 else max t[i, j + 1] t[i + 1, j]
        in t with [i + 1, j + 1] <- v
     in t[n, n]) xs ys
