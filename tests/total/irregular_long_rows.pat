-- fuzz: seed=1 b=2 n=4099
-- Scatters, histograms, sorts and updates of rows that are longer than the local memory of a group.
entry irregular_long_rows [b] [n] (xs: [b][n]f32) : ([b][n]f32, [b][4500]i32, [b]([3]u8, [n]f32), [b][n]f32) =
  let scattered = map (\r -> scatter r (map (* 2) (iota n)) (map (+ 1) r)) xs
  let counts = map (\r -> histogram (+) 0 4500 (map (\x -> i32.f32 (x * 1000)) r) (replicate n 1)) xs
  let order = map (\r -> counting_sort 3 (map (\x -> if x < 0 then 0 else 7u8) r) r) xs
  let updated = map (\r -> loop r = r for j < 3 do r with [argmax r] <- f32.lowest) xs
  in (scattered, counts, order, updated)
