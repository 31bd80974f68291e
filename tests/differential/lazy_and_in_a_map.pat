-- fuzz: seed=2 n=5 m=7
-- gen: xs=whole:-4..5 ys=whole:-4..5
entry random [n] [m] (xs: [n]i32) (ys: [m]i32) : [n]bool =
  map (\x -> x > 0 && reduce (+) 0 (map (* x) ys) > x) xs
