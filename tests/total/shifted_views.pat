-- fuzz: seed=1 n=6 m=10

-- Computed arrays are read in the opposite order, by columns, in rows of another length, behind a border, and at places of a table.
entry shifted [n][m] (u: [n][m]f32) (is: [n]i32) : ([n][m]f32, [n * m]f32) =
  let a = map (map (\x -> x * x + 1)) u
  let turned = map reverse a
  let left = map (\r -> map2 (-) (pad 1 0 clamp r)[:m] r) a
  let columns = transpose (map (map (* 2)) (transpose left))
  let edge = concat (take 1 columns) (map2 (map2 (+)) columns[1:] turned[:n - 1])
  let moved = gather edge (map (\i -> min (max i 0) (n - 1)) is)
  let flat = flatten a in
  (map2 (map2 (-)) moved turned, map2 (*) (rotate 3 flat) (reverse flat))
