-- fuzz: seed=8 n=500 m=7
-- gen: xs=whole:-20..20
-- The bin of an element needs statements: a choice, and a value that is used twice.
entry bins [n][m] (xs: [n]i32) (z: [m]i32) : [m]i32 =
  let bin = \x -> let a = abs (x * x - 7 * x) in if a % 3 == 0 then a % m else if a > 40 then a / 40 else -1
  in histogram (+) 0 m (map bin xs) (map (\x -> let y = x * 3 + 1 in if y > 4 then y * y else 1) xs)
