-- fuzz: seed=1 b=3 v=4099
entry chosen_sorts [b][v] (ks: [b]i32) (xs: [b][v]u8) (is: [b][v]u32) : [b][v]i32 =
  map3
    (\k r is ->
      let places = map (\i -> i32.u32 (i % 4099)) is in
      if k > 0
      then places
      else (counting_sort 256 (map (\i -> i32.u8 (r[i])) places) places).1)
    ks
    xs
    is
