-- fuzz: seed=1 n=101

entry scanmap [n] (xs: [n]f32) : [n]f32 = xs |> map abs |> scan (+) 0 |> map sqrt
