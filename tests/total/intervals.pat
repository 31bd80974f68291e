-- fuzz: seed=1 h=2 s=9 w=4 d=3

-- Windows of keys in front of each query, by index, over intervals; also intervals with names, and those that are arrays.
entry windows [h][s][w][d]
  (w: i64)
  (q: [h][s][d]f32)
  (k: [h][s][d]f32)
  (v: [h][s][d]f32)
  : ([h][s][d]f32, [s][w]i64, [w]i32) =
  let ks = 1 ... w
  let attend qs ks vs =
    map2
      (\i row ->
        let at j = i - i32.i64 w + 1 + j
        let score j = if at j < 0 then f32.lowest else sum (map2 (*) row ks[at j])
        let ss = map score (0 ..< w)
        let m = maximum ss
        let es = map (\x -> exp (x - m)) ss in
        generate d (\c ->
          sum (map2 (\e j -> if at j < 0 then 0 else e * vs[at j, c]) es (0 ..< w)) / sum es))
      (iota s)
      qs in
  (map3 attend q k v, map (\i -> map (\j -> 10 * i + j) ks) (2 ..< s + 2), map i32.i64 (reverse ks))
