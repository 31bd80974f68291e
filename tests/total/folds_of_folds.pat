-- fuzz: seed=1 n=5 m=7 k=9

-- Loops from the left of loops from the left are not one loop: their operators need not be associative.
def damped [k] (xs: [k]f32) : f32 = foldl (\s x -> s * 0.5 + x) 0 xs
-- gen: A=normal
entry folds [n] [m] [k] (A: [n][m][k]f32) : ([n]f32, [n]f32) =
  (map (\M -> damped (map damped M)) A, map (\M -> foldl (-) 0 (map (foldl (-) 0) (transpose M))) A)
