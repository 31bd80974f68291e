-- fuzz: seed=1 h=9 w=14
-- A sum over all points of a periodic stencil, of a field that is computed first: rows at several places.
entry sum_of_stencil [h] [w] (spins: [h][w]bool) : (i32, [h][w]i8) =
  let s = map (map (\up -> if up then 1i8 else -1)) spins
  let e = sum (flatten (tabulate_2d h w (\i j -> i32.i8 (s[i, j] * (s[(i + 1) % h, j] + s[i, (j + 1) % w])))))
  in (e, s)
