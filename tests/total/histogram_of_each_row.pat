-- fuzz: seed=1 b=5 n=301

-- A group counts in local memory. The table that follows is read by all of its work-items.
-- gen: images=whole:0..256
entry equalised [b][n] (images: [b][n]u8) : [b][n]u8 =
  map
    (\image ->
      let counts = histogram (+) 0 256 (map i32.u8 image) (replicate n 1)
      let table = map (\c -> u8.i32 (255 * c / i32.i64 n)) (scan (+) 0 counts) in
      map (\v -> table[i32.u8 v]) image)
    images
