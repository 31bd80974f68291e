-- fuzz: seed=1 n=37 m=23

-- Checksums of rows by a table that the program computes.
entry checksums [n][m] (rows: [n][m]u8) : [n]u32 =
  let table =
    generate 256 (\i ->
      loop c = u32.i32 i for k < 8 do if c & 1 == 1 then 0xedb88320 ^ (c >> 1) else c >> 1) in
  map (\row -> loop c = 7u32 for x in row do table[(c ^ u32.u8 x) & 0xff] ^ (c >> 8)) rows
