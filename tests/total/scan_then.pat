-- fuzz: seed=9 n=1500
-- gen: xs=whole:-9..10 ys=whole:-9..10
-- Results of scans meet each other, their elements, and other arrays.
entry met [n] (xs: [n]i32) (ys: [n]i32) : ([n]i32, [n]i32, [n]i32) =
  let s = scan (+) 0 (map (\x -> x * x) xs)
  let t = map2 (\a b -> a * 2 - b) (scan max (-100) xs) ys
  let u = map3 (\a b c -> a + 3 * b - c) (scan (+) 0 xs) (scan min 100 ys) xs
  in (map (\a -> a / 2 + 1) s, t, u)
