-- fuzz: seed=1 b=13 d=18 n=11

-- A cell whose gates are parts of one sum of two products.
def dot xs ys = sum (map2 (*) xs ys)

entry cell [b][d][n]
  (x: [b][d]f32)
  (h: [b][n]f32)
  (W: [3 * n][d]f32)
  (U: [3 * n][n]f32)
  (bias: [3 * n]f32)
  : ([b][n]f32, [b][n]f32) =
  unzip
    (map2
      (\xs hs ->
        let z = map3 (\w u c -> dot w xs + dot u hs + c) W U bias
        let c = map2 (\f g -> f * tanh g) z[:n] z[n:2 * n] in
        (map2 (\o y -> o * tanh y) z[2 * n:] c, c))
      x
      h)
