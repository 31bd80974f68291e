-- fuzz: seed=1 n=37 m=5 k=7

-- Elements of the state never meet: one map whose function is the loop.
entry oscillators [n][m][k] (xs: [n]f32) (vs: [n]f32) (grid: [n][m]f32) (force: [k][n]f32) (c: [n]f32) (steps: i32)
  : (([n]f32, [n]f32), [n][m]f32) =
  let moved = loop ((x, v) = (xs, vs)) for s < k do
      let nv = map2 (\b a -> b - 0.1 * a) v x
      let pushed = map2 (\b f -> b + f) nv force[s]
      let t = f32.i32 s * 0.01
      in (map2 (\a b -> a + b * t) x pushed, map2 (\b d -> b * d) pushed c)
  let cooled = loop (g = grid) for s < 3 do map2 (\row d -> map (\v -> v * 0.5 + d) row) g c
  in (moved, cooled)
