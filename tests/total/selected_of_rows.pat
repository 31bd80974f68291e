-- fuzz: seed=1 b=2 n=520

-- The greatest elements of each row, the first ones of equal ones.
entry greatest_of_rows [b][n] (xs: [b][n]f32) : ([b][4]f32, [b][4]i32) =
  let best row = let order = take 4 (argsort (map neg row)) in (gather row order, order) in
  unzip (map best xs)
