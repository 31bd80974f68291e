-- fuzz: seed=1 n=12

entry lu_like [n] (a: [n][n]f32) : [n][n]f32 = loop (m = a) for k < n do generate n (\i -> generate n (\j -> if i > k then m[i,j] - m[i,k] * m[k,j] / (m[k,k] + 1) else m[i,j]))
