-- fuzz: seed=1 n=40 c=21

-- Two results, each a reduction of a reduction of rows.
entry loss_and_accuracy [n][c] (logits: [n][c]f32) (labels: [n]i32) : (f32, i32) =
  let losses = map (\row ->
    let m = reduce max f32.lowest row
    in log (reduce (+) 0 (map (\x -> exp (x - m)) row)) + m) logits
  let hit = map2 (\row l ->
    let (_, best) = zip row (iota c) |> reduce (\(a, i) (b, j) -> if b > a || (b == a && j < i) then (b, j) else (a, i)) (f32.lowest, i32.highest)
    in i32.bool (best == l)) logits labels
  in (reduce (+) 0 losses, reduce (+) 0 hit)
