-- fuzz: seed=1 b=2 n=5 m=7
-- Slices at counted places: of two dimensions, in steps, from a place on, with places that are read beside them, and one that is
-- outside of the array if it is not chosen.
entry f [b] [n] [m] (xs: [b][2*n + 3][2*m + 2]f32) : [b][n][m](f32, f32, f32) =
  map (\p ->
    let edge = map (\r -> map (* 0.5) r) p
    in tabulate_2d n m (\i j ->
      let w = p[2*i + 1:2*i + 4, 2*j:2*j + 2]
      let near = sum (map sum edge[i:i + 2, j + 1:j + 4])
      let far = if i + 3 < n then maximum (map maximum p[2*i + 7:2*i + 9, j:j + 2]) else p[i, j]
      in (w[0, 1] - w[2, 0] + sum w[1], near * p[i + 1, j], far))) xs
