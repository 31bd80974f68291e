-- fuzz: seed=1 b=2 ci=3 co=5 h=17 w=21
-- The same with the channels last, in steps of two.
entry conv [b][ci][co][h][w] (x: [b][2*h+1][2*w+1][ci]f32) (wt: [3][3][ci][co]f32) (bias: [co]f32) (skip: [b][h][w][co]f32) : [b][h][w][co]f32 =
  tabulate_3d b h w (\n i j -> tabulate co (\o ->
     let s = sum (flatten (flatten (tabulate_3d 3 3 ci (\p q c -> x[n, 2*i + p, 2*j + q, c] * wt[p, q, c, o]))))
     let t = s + bias[o] in (if t > 0 then t else 0.1 * t) + skip[n, i, j, o]))
