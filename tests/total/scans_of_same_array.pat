-- fuzz: seed=1 n=1009
-- Scans of the same array are one scan. One of them is scanned again.
-- gen: xs=whole:-4..4
entry sums [n] (xs: [n]f32) (ys: [n]i32) : ([n]f32, [n]f32, [n]f32, [n]f32, [n]i32) =
  let sums = scan (+) 0 xs
  let squares = scan (+) 0 (map (** 2) xs)
  let before = scan_exclusive (+) 0 (map2 (\x y -> if y > 0 then x else 0) xs ys) in
  (map2 (+) sums squares,
    squares,
    before,
    scan max f32.lowest sums,
    scan_exclusive max i32.lowest ys)
