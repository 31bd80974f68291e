-- fuzz: seed=1 n=7 m=19

entry capture_op [n][m] (xs: [n][m]f32) : [n]f32 = map (\r -> let c = r[0] in reduceSeq (\a b -> a * c + b) 0 r) xs
