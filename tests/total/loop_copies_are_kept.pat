-- fuzz: seed=7 n=8 m=5
-- gen: A=whole:0..9 s=whole:0..9

-- A step changes a copy of its state and still needs what it had before; or it stops before the copy is the state.
entry kept [n] [m] (A: [n][m]i32) (s: i32) : ([n][m]i32, [n][m]i32) =
  let B = loop A = A for k < n do
    let C = A with [k] <- map (+ k) A[(k + 1) % n]
    in map2 (map2 (\x y -> (x + y) % 50)) C (map (\i -> A[(i + k) % n]) (iota n))
  let (C, _) = loop (A, t) = (A, s) while t < 20 do
    let D = A with [t % n] <- map (* 3) A[t % n]
    in (map2 (\i row -> if i > t % n then map2 (\x y -> (x + y) % 60) row D[t % n] else row) (iota n) D, t + 3)
  in (B, C)
