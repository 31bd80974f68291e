-- fuzz: seed=1 n=5 m=9

-- Computed arrays are read at several shifted places, whole and by index.
def limited (a: f32) (b: f32) : f32 = if a * b > 0 then 0 else a

entry diffused [n][m] (u: [n + 4][m + 4]f32) (c: [n][m]f32) : [n][m]f32 =
  let lap =
    tabulate_2d (n + 2) (m + 2) (\i j ->
      4 * u[i + 1, j + 1] - (u[i + 2, j + 1] + u[i, j + 1] + u[i + 1, j + 2] + u[i + 1, j]))
  let resx = map2 (map2 (-)) lap[1:, 1:m + 1] lap[:n + 1, 1:m + 1]
  let difx = map2 (map2 (-)) u[2:n + 3, 2:m + 2] u[1:n + 2, 2:m + 2]
  let flx = map2 (map2 limited) resx difx
  let fly =
    tabulate_2d n (m + 1) (\i j ->
      limited (lap[i + 1, j + 1] - lap[i + 1, j]) (u[i + 2, j + 2] - u[i + 2, j + 1]))
  let dx = map2 (map2 (-)) flx[1:] flx[:n]
  let dy = map2 (map2 (-)) fly[:, 1:] fly[:, :m] in
  map2 (map2 (-)) u[2:n + 2, 2:m + 2] (map2 (map2 (*)) c (map2 (map2 (+)) dx dy))
