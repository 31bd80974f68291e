-- fuzz: seed=3 n=9 m=13

-- Rows of the loop's state, each computed from the rows before it.
entry orthonormal [n] [m] (A: [n][m]f32) : [n][m]f32 =
  loop A = A for k < n do
    let row = A[k]
    let d = map2 (\j q -> if j < k then sum (map2 (*) q row) else 0.0) (iota n) A
    let v = map2 (\x col -> x - sum (map2 (*) d col)) row (transpose A)
    let s = 1.0 + sum (map (\x -> x * x) v)
    in A with [k] <- map (/ s) v
