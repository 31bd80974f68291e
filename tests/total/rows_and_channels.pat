-- fuzz: seed=3 n=5 m=37 k=3
-- gen: x=normal bias=normal rho=normal a=normal

-- Nests of three maps with views between them, rows met by what is computed of them, and scans of rows by element.
entry rows_and_channels [n][m][k] (x: [k][n][m]f32) (bias: [k]f32) (rho: [n][m]f32) (a: [n][m]f32)
  : ([k][n][m]f32, [k][n][m]f32, [n][m]f32, [n][m]f32, [m]f32) =
  let biased = map2 (\xc b -> map (map (\v -> max 0 (v + b))) xc) x bias in
  let without = map (\xc -> map2 (map2 (\v r -> v - r)) xc rho) x in
  let near = map (\r -> generate m (\t -> let i = t / 2 in reduce (+) 0 (map (\q -> r[max 0 (i - q)]) (iota 3)))) a in
  let comb = scanSeq (\y r -> map2 (\p q -> q + 0.5 * p) y r) (replicate m 0.0) a in
  let last = reduceSeq (\y r -> map2 (\p q -> q - 0.5 * p) y r) (replicate m 1.0) a in
  (biased, without, near, comb, last)
