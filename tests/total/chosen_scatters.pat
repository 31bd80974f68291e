-- fuzz: seed=1 b=3 v=4099
entry chosen_scatters [b][v] (ks: [b]i32) (xs: [b][v]f32) (js: [b][v]u32) : [b][v]f32 =
  map3
    (\k r is ->
      let n = if k > 0 then u32.i32 k else 0
      let places = iota v in
      if n == 0
      then r
      else scatter r places (map (\j -> r[i32.u32 (j / n % 4099)]) is))
    ks
    xs
    js
