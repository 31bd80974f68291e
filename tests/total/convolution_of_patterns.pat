-- fuzz: seed=1 k=5 h=31 w=29
-- Differences of windows to several patterns, with holes; zero border.
entry match [k][h][w] (x: [h][w]f32) (ps: [k][3][3]f32) : [k][h][w]f32 =
  map (\p -> tabulate_2d h w (\i j -> sum (map2 (\row di -> sum (map2 (\e dj ->
    let y = i + 2 * di - 2
    let z = j + 2 * dj - 2
    let v = if y >= 0 && y < h && z >= 0 && z < w then x[y, z] else 0 in (v - e) ** 2) row (iota 3))) p (iota 3)))) ps
