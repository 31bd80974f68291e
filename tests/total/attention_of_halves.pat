-- fuzz: seed=1 h=1 s=256 d=16 c=3

-- Attention of numbers of half precision: scores are sums in f32, and weights in f32 meet values in f16.
entry attention_of_halves [h][s][d][c]
  (q: [h][s][d]f16)
  (k: [h][s][d]f16)
  (v: [h][s][c]f16)
  : [h][s][c]f32 =
  map3
    (\qh kh vh ->
      map
        (\row ->
          let scores = map (\key -> sum (map2 (\a b -> f32.f16 a * f32.f16 b) row key)) kh
          let most = maximum scores
          let e = map (\x -> exp (x - most)) scores
          let total = sum e in
          map (\col -> sum (map2 (\p x -> p * f32.f16 x) e col) / total) (transpose vh))
        qh)
    q
    k
    v
