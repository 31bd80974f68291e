-- fuzz: seed=1 k=401 m=2
entry passed_on [k][m] (p: [k][m]f32) (q: [k][m]f32) (w: [m][m]f32) (r: [k]f32) : [k][m]f32 =
  loop p = p for s < 3 do
    generate k (\i ->
      let next = (i + 1) % k
      let a = p[i, 0] - q[next, m - 1]
      let b = 0.5 * (a - p[next, 0] * r[i]) in
      generate m (\j -> r[i] * (w[j, 0] * a + w[j, 1] * b - sum (map2 (*) w[j] p[i]))))
