-- fuzz: seed=1 m=5 o=37 g=4

-- Weights of four bits, eight in a word, with a scale for each group, times few rows.
def nibble (word: u32) (k: i32) : f32 = f32.i32 (i32.u32 ((word >> u32.i32 (4 * k)) & 15) - 8)

entry linear [m][o][g] (x: [m][32 * g]f32) (packed: [o][g][4]u32) (scale: [o][g]f32) : [m][o]f32 =
  let W =
    map2
      (\prow srow ->
        flatten
          (map2
            (\words s -> flatten (map (\w -> map (\k -> s * nibble w k) (iota 8)) words))
            prow
            srow))
      packed
      scale in
  map (\xr -> map (\wr -> sum (map2 (*) xr wr)) W) x
