-- fuzz: seed=1 n=18 m=21

-- The prelude inside maps, its views, and its folds.
entry rows [n] [m] (A: [n][m]f32) (xs: [n]f32)
  : ([n]f32, [n]i32, [m]bool, [n * m]f32, [m][n]f32, [n - 1]f32, ([n]f32, f32), [n][m]f32) =
  ( map (\r -> sum r / maximum (map abs r)) A
  , map argmin A
  , map (any (< 0)) (transpose A)
  , map (* 2) (flatten A)
  , transpose (unflatten (flatten (map_2d (+ 1) A)))
  , map2 (+) (init xs) (map (\x -> x - head xs + last xs) (tail xs))
  , (foldl (map2 (\a b -> a * 0.5 + b)) xs (transpose A), foldr (\x acc -> x - acc * 0.5) 0 xs)
  , map2_2d (\a i -> a + f32.i32 i) A (tabulate_2d n m (\i j -> i * j % 7))
  )
