-- fuzz: seed=1 c=70 n=96

-- Work-items read rows of bytes, many at a time.
entry hash [c][n] (rows: [c][n]u8) : [c]u32 =
  map (\r -> foldl (\h b -> (h ^ u32.u8 b) * 16777619) 2166136261u32 r) rows
