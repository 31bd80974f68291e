-- fuzz: seed=1 m=3 o=19 k=264

-- Weights of four bits by index: the shift is a remainder.
entry linear [m][o][k]
  (x: [m][k]f32)
  (packed: [o][k / 8]u32)
  (scale: [o]f32)
  (zero: [o]f32)
  : [m][o]f32 =
  let w =
    generate o (\j ->
      generate k (\l ->
        scale[j] * (f32.u32 ((packed[j, l / 8] >> u32.i32 (4 * (l % 8))) & 15) - zero[j]))) in
  map (\xr -> map (\wr -> sum (map2 (*) xr wr)) w) x
