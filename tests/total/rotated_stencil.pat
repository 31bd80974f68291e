-- fuzz: seed=1 h=9 w=7

-- Generations of the game of life on a torus, with a word for the cells of a row's part: arrays that are rotated to both sides.
entry life [h][w] (cells: [h][w]u32) : [h][w]u32 =
  let step (g: [h][w]u32) : [h][w]u32 =
    let left = map (\r -> map2 (\x l -> (x << 1) | (l >> 31)) r (rotate (-1) r)) g
    let right = map (\r -> map2 (\x n -> (x >> 1) | (n << 31)) r (rotate 1 r)) g
    let rows = map3 (map3 (\a b c -> (a ^ b ^ c, (a & b) | (c & (a ^ b))))) left g right in
    map3
      (map3 (\(u0, u1) (d0, d1) x -> (u0 ^ d1) | (u1 & d0 & ~x)))
      (rotate (-1) rows)
      (rotate 3 rows)
      g in
  iterate 3 step cells
