-- fuzz: seed=1 n=67 m=70
-- Sums, counts and maxima in loops, with starts that are not neutral, and tuples.
entry f [n][m] (xs: [n][m]f32) (ys: [m]f32) (t: f32) : [n](f32, f32, i32) =
  map (\r ->
    let dot = loop acc = 0.5f32 for k < m do acc + r[k] * ys[k]
    let (top, count) = loop (top, count) = (t, 3i32) for x in r do (max x top, if x > t then count + 1 else count)
    in (dot, top, count)) xs
