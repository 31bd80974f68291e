-- fuzz: seed=1 b=3 n=4097
-- Some rows are partitioned, others stay: the choice is made element by element.
entry long_rows_chosen [b] [n] (xs: [b][n]f32) : ([b][n]f32, [b]i32) =
  unzip (map (\r ->
    let (k, parts) = partition (> 0) r
    in (if maximum r > 5 then parts else r, k)) xs)
