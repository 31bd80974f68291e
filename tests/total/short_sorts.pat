-- fuzz: seed=1 b=2 n=5 m=7
-- Short arrays of known length that are sorted: single elements, all of them, and both; floats with signs, and integers.
entry f [b] [n] [m] (xs: [b][n + 2][m + 2]f32) (ks: [m][4]i16) : ([b][n][m]f32, [m][4]i16, [m](i16, [3]i16), [n]f32) =
  let median w = (sort (flatten w))[4]
  let spread (w: [3]f32) = let s = sort w in s[2] - s[0]
  in (map (\x -> tabulate_2d n m (\i j -> median x[i:i + 3, j:j + 3])) xs,
      map sort ks,
      map (\k -> let s = sort k in (s[1], s[1:])) ks,
      map (\r -> spread r[:3]) xs[0][:n])
