-- fuzz: seed=1 n=67 d=5

-- A product with weights that the program computes, and that all of its elements meet.
entry hessian [n] [d] (X: [n][d]f32) (w: [d]f32) : [d][d]f32 =
  let p = map (\x -> 1 / (1 + abs (sum (map2 (*) x w)))) X
  in map (\a -> map (\b -> sum (map3 (\x y q -> x * y * q) a b p)) (transpose X)) (transpose X)
