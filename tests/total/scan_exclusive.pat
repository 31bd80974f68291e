-- fuzz: seed=1 n=101

entry offsets [n] (counts: [n]i32) : [n]i32 = counts |> map (\c -> c % 100) |> scan_exclusive (+) 0 |> map (* 2)
