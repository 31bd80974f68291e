-- fuzz: seed=1 n=7
-- gen: A=whole:0..9 P=whole:0..9 U=whole:0..9 o=const:2 k=const:-1
entry guarded_rows [n] (A: [n][n]i32) (P: [n][3]i32) (U: [3][n]i32) (o: i32) (k: i32) =
  (map2 (\i row -> map2 (\j x ->
      if i < o then x
      else if i < o + 3 then U[i - o, j]
      else x - sum (map (\p -> P[i, p] * U[p, j]) (iota 3))) (iota n) row) (iota n) A,
   map (\row -> if k >= 0 then row[k] + sum row else 0) A)
