-- fuzz: seed=1 n=37 k=5
-- gen: is=whole:0..k js=whole:0..k w=uniform
-- Rows of a table at places that data decide: elements that are neighbours in memory, of rows of four, eight and three, at
-- places in a second table, and under a condition.
entry f [n] [k] (T: [k][4]f32) (U: [k][2][4]i32) (V: [k][3]f32) (is: [n]i32) (js: [k]i32) (w: [n][4]f32) :
  ([n]f32, [n]i32, [n](f32, f32), [n][4]f32, [n]f32) =
  let dots = map2 (\i ws -> sum (map2 (*) T[i] ws)) is w
  let all = map (\i -> let u = U[i] in u[0, 0] + u[0, 1] * u[0, 2] + u[0, 3] + u[1, 0] + u[1, 3]) is
  let pairs = map (\i -> let (r, s) = (T[js[i]], T[i]) in (r[0] * s[3] + r[1] * s[2], r[2] - s[0] + V[i, 0] * V[i, 2])) is
  let mixed = map2 (\i ws -> map2 (\t x -> 0.5 * t + x) T[i] ws) is w
  let chosen = map2 (\i ws -> if ws[0] > 0.5 then T[i, 0] + T[i, 1] + T[i, 2] + T[i, 3] else ws[1]) is w
  in (dots, all, pairs, mixed, chosen)
