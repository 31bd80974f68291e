-- fuzz: seed=1 n=32771 c=3
-- Many reductions of a few long rows in one function.
entry scores [n][c] (prob: [n][c]f32) (pred: [n]i32) (lab: [n]i32) : ([c]f32, [c]f32) =
  unzip
    (map
      (\k ->
        let inter = sum (map2 (\p y -> if y == k then p[k] else 0) prob lab)
        let total = sum (map (\p -> p[k]) prob) + f32.i32 (count (== k) lab)
        let both = count id (map2 (\q y -> q == k && y == k) pred lab)
        let either = count id (map2 (\q y -> q == k || y == k) pred lab) in
        ((2 * inter + 1) / (total + 1), f32.i32 both / f32.i32 (max 1 either)))
      (iota c))
