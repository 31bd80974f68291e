-- fuzz: seed=1 n=101

entry histbytes [n] (xs: [n]i32) : [256]i32 = histogram (+) 0 256 (map (\x -> (x % 256 + 256) % 256) xs) (map (\x -> 1) xs)
