-- fuzz: seed=1 n=6007

entry scan_in_parts [n] (xs: [n]f32) : [n]f32 = xs |> map (\x -> x + 1) |> scan (+) 0
