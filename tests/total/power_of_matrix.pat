-- fuzz: seed=1 n=37

-- A product of matrix and vector in a loop, and two more products after it.
def norm v = sqrt (1 + reduce (+) 0 (map (\x -> x * x) v))
entry power [n] (A: [n][n]f32) (v0: [n]f32) : ([n]f32, f32) =
  let v = iterate 3 (\v ->
    let w = map (\row -> reduce (+) 0 (map2 (*) row v)) A
    let s = 1 / norm w
    in map (* s) w) v0
  let av = map (\row -> reduce (+) 0 (map2 (*) row v)) A
  in (v, reduce (+) 0 (map2 (*) v av))
