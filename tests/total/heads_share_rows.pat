-- fuzz: seed=1 h=6 g=3 n=7 d=5

-- Grouped attention by index: some heads share the keys and the values of a group.
entry grouped [h][g][n][d] (q: [h][n][d]f32) (k: [g][n][d]f32) (v: [g][n][d]f32) : [h][n][d]f32 =
  generate h (\a -> generate n (\i ->
    let group = a * g / h
    let s = generate n (\j -> reduce (+) 0 (generate d (\c -> q[a, i, c] * k[group, j, c])))
    let m = reduce max f32.lowest s
    let e = map (\x -> exp (x - m)) s
    let z = reduce (+) 0 e
    in generate d (\c -> reduce (+) 0 (generate n (\j -> e[j] * v[group, j, c])) / z)))
