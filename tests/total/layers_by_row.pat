-- fuzz: seed=1 t=259 d=17 f=257
-- Layers that are written row by row: what one computes is an operand of the next.
def linear W x = map (\row -> sum (map2 (*) row x)) W

entry layers [t][d][f]
  (xs: [t][d]f32)
  (g: [d]f32)
  (A: [f][d]f32)
  (B: [f][d]f32)
  (C: [d][f]f32)
  : [t][d]f32 =
  map
    (\x ->
      let r = rsqrt (sum (map (\v -> v * v) x) + 0.001)
      let n = map2 (\v w -> v * r * w) x g
      let h = map2 (\a b -> max 0 a * b) (linear A n) (linear B n) in
      map2 (+) x (linear C h))
    xs
