-- fuzz: seed=1 h=9 w=11
-- Pixels with few channels: places of a padded image in front of which numbers are scaled, an array of channels, and a small matrix.
entry pixels [h][w] (raw: [h][w]u16) (m: [3][3]f32) (gain: [3]f32) : ([h][w]f32, [h][w]f32) =
  let scaled = map_2d (\v -> f32.u16 v / 4096) raw
  let mixed p =
    tabulate_2d h w (\i j ->
      let at a b = p[i + 1 + a, j + 2 + b]
      let cross = (at (-1) 0 + at 1 0 + at 0 (-2) + at 0 1) / 4
      let (r, g, b) =
        if i % 2 == 0 && j % 2 == 0 then (at 0 0, cross, at 1 1) else (cross, at 0 0, at (-1) (-1))
      let rgb = [r * gain[0], g * gain[1], b * gain[2]]
      let out = map (\row -> clamp (sum (map2 (*) row rgb)) 0 1) m in
      out[0] + 2 * out[1] + 4 * out[2]) in
  (mixed (pad_2d 1 2 mirror scaled), mixed (pad_2d 1 2 wrap scaled))
