-- fuzz: seed=1 h=6 w=19
-- Loops of the host that compute the next row of a table from rows before it, forwards and backwards; from two rows; and from the
-- row that changes and a row that may be it.
entry f [h] [w] (e: [h][w]f32) (c: [w]f32) : ([h][w]f32, [h][w]f32, [h][w]f32, [h][w]f32, [h][w]f32) =
  let down = loop m = e for y < h - 1 do
    let prev = m[y]
    in m with [y + 1] <- map2 (\x v -> v + min prev[x] (min prev[max (x - 1) 0] prev[min (x + 1) (w - 1)])) (iota w) e[y + 1]
  let up = loop m = e for k < h - 1 do
    let y = h - 2 - k
    in m with [y] <- map3 (\a b v -> 0.5 * a + 0.25 * b + v) m[y + 1] (rotate 1 m[y + 1]) e[y]
  let two = loop m = e for y < h - 2 do
    m with [y + 2] <- map3 (\a b v -> a - 0.5 * b + v) (rotate (-1) m[y + 1]) m[y] c
  let same = loop m = e for y < h - 1 do
    m with [y + 1] <- map2 (\a b -> 0.5 * a + b) (rotate 1 m[y + 1]) m[y]
  let fixed = loop m = e for y < h - 1 do
    m with [y + 1] <- map2 (\a b -> 0.5 * a + b) (rotate 1 m[2]) m[y]
  in (down, up, two, same, fixed)
