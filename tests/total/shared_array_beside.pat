-- fuzz: seed=1 n=9

-- A value of each element is used for each of its parts, which are read from an array that was computed.
def step [n] (F: [n][3]f32) : [n][3]f32 =
  map (\i -> let s = F[i, 0] + F[i, 1] in map (\q -> 0.5 * F[i, q] + s) (iota 3)) (iota n)

entry z_shared_array_beside [n] (F: [n][3]f32) : [n][3]f32 = step (step F)
