-- fuzz: seed=1 n=4096 m=3 k=4

-- A loop from the left over many pairs is not computed in parts.
-- gen: A=normal B=normal
entry of_pairs [n] [m] [k] (A: [m][n]f32) (B: [k][n]f32) : [m][k]f32 =
  map (\a -> map (\b -> foldl (\s p -> s * 0.5 + p) 0 (map2 (*) a b)) B) A
