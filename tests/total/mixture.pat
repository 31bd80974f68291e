-- fuzz: seed=1 n=301 k=7 d=5

-- Short rows that are computed and read twice: a work-item keeps them.
entry mixture [n] [k] [d] (X: [n][d]f32) (centres: [k][d]f32) (weights: [k]f32) : [n][k]f32 =
  map (\x ->
    let ls = map2 (\c w -> w - reduce (+) 0 (map2 (\u v -> (u - v) ** 2) x c)) centres weights
    let most = reduce max f32.lowest ls
    let total = reduce (+) 0 (map (\l -> exp (l - most)) ls)
    in map (\l -> exp (l - most) / total) ls) X
