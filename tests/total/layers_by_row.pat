-- fuzz: seed=1 t=259 d=17 f=257
-- A layer that is written row by row: two products read a row that is computed.
def linear W x = map (\row -> sum (map2 (*) row x)) W

entry layer [t][d][f] (xs: [t][d]f32) (A: [f][d]f32) (B: [f][d]f32) : [t][f]f32 =
  map
    (\x ->
      let r = rsqrt (sum (map (\v -> v * v) x) + 0.001)
      let n = map (* r) x in
      map2 (\a b -> max 0 a * b) (linear A n) (linear B n))
    xs
