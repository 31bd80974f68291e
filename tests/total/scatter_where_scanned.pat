-- fuzz: seed=5 n=1000
-- gen: xs=whole:-9..10
-- What is kept moves to the front: the places come from a scan, and the values are the elements.
entry kept [n] (xs: [n]i32) : ([n]i32, i32) =
  let keep = map (\x -> if x > 2 then 1 else 0) xs
  let upto = scan (+) 0 keep
  let places = map2 (\k u -> if k == 1 then u - 1 else -1) keep upto
  in (scatter (replicate n 0) places xs, last upto)
