-- fuzz: seed=1 ci=3 co=5 h=9 w=11
-- Shares of the channels of a masked convolution.
entry f [ci][co][h][w] (x: [ci][h + 2][w + 2]f32) (k: [co][ci][3][3]f32) : [h][w][co]f32 =
  tabulate_2d h w (\i j ->
    let all = map (\c -> sum (map2 (\p r ->
      sum (tabulate 3 (\a -> sum (tabulate 3 (\b -> if a >= b then p[i + a, j + b] * r[a, b] else 0))))) x c)) k
    let top = maximum all
    in map (\v -> exp (v - top)) all)
