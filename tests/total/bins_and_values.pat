-- fuzz: seed=1 n=70 g=8

-- Bins and values of a histogram are parts of what one function computes of an element, several for each.
entry spread [n][g] (xs: [n]f32) (ws: [n]f32) : [g]f32 =
  let parts =
    map2
      (\x w ->
        let at = i32.f32 (floor (abs x)) % 5 in
        map (\k -> (at + k, if w > 0 then w * f32.i32 k else 1)) (iota 4))
      xs
      ws
  let (at, values) = unzip (flatten parts) in
  histogram (+) 0 g at values
