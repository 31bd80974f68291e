-- fuzz: seed=1 n=7 m=20

-- gen: ks=uniform:0..3*n
-- A computed place in slices of rows is divided by the length of a slice. Rows are twice as long as a slice, and longer.
entry pick [m][n] (x: [n][6]f32) (y: [n][14]f32) (ks: [m]i32) : ([m]f32, [m]f32) =
  let xs = flatten (map (\row -> row[1:4]) x)
  let ys = flatten (map (\row -> row[2:5]) y) in
  (map (\k -> xs[k]) ks, map (\k -> ys[k]) ks)
