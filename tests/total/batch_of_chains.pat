-- fuzz: seed=3 b=2 n=36
-- gen: A=normal B=normal

-- Two products, one after the other, for each element of a batch; the matrix between them is large.
entry chains [b][n] (A: [b][n][n]f32) (B: [b][n][n]f32) : [b][n][n]f32 =
  map2
    (\a q ->
      let first = map (\r -> map (\c -> reduce (+) 0 (map2 (*) c r)) (transpose q)) a in
      map (\r -> map (\c -> reduce (+) 0 (map2 (*) r c)) q) first)
    A
    B
