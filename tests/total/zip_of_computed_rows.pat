-- fuzz: seed=1 h=7 w=13
-- Element by element, of matrices of which some are computed.
entry zips [h] [w] (a: [h][w]f32) (b: [h][w]f32) : ([h][w]f32, [h][w]f32) =
  let p = pad 1 1 0 (map (pad 1 1 0) a)
  let lap = tabulate_2d h w (\i j -> p[i, j + 1] + p[i + 2, j + 1] - 2 * p[i + 1, j + 1])
  in (map3 (map3 (\x y z -> 2 * x - y + 0.5 * z)) a b lap,
      map4 (map4 (\x y z t -> x + y * z - t)) a (map (map sqrt) (map (map abs) b)) lap (map (rotate 1) b))
