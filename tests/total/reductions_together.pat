-- fuzz: seed=1 n=37 m=5
-- gen: xss=normal ys=normal
entry statistics [m][n] (xss: [m][n]f32) (ys: [n]f32) : [m]((f32, f32), (f32, i32)) =
  map (\xs ->
    let most = reduce (\(a, i) (b, j) -> if b > a || (b == a && j < i) then (b, j) else (a, i)) (f32.lowest, i32.highest) (zip xs (iota n))
    let sum = reduce (+) 0 xs
    let product = reduce (+) 0 (map2 (*) xs ys)
    in ((sum, product), most)) xss
