-- fuzz: seed=1 b=12 t=70

-- What a scan gives is a result, and is reduced.
entry scan_and_its_sums [b][t] (price: [b][t]i32) : ([b][t]i32, [b]i32) =
  let dd = map (\p -> map (* 2) (scan (+) 0 p)) price
  in (dd, map (reduce (+) 0) dd)
