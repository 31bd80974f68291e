-- fuzz: seed=1 m=4 o=33 h=70

-- Weights by codes in a table, two in a byte.
entry linear [m][o][h]
  (x: [m][2 * h]f32)
  (codes: [o][h]u8)
  (table: [16]f32)
  (scale: [o]f32)
  : [m][o]f32 =
  let W =
    map2
      (\cr s -> flatten (map (\b -> [s * table[i32.u8 (b & 15)], s * table[i32.u8 (b >> 4)]]) cr))
      codes
      scale in
  map (\xr -> map (\wr -> sum (map2 (*) xr wr)) W) x
