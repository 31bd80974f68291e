-- fuzz: seed=6 b=4 n=19

-- Loops over arrays whose steps go through the array in parallel, until data end them: a counter up to a number of the row, a
-- sum of the state, an element of it, two arrays of which one is updated, and a loop around another one.
entry loops [b] [n] (xss: [b][n]f32) (ks: [b]i32) =
  let times = map2 (\xs k -> (loop (v, i) = (xs, 0i32) while i < k % 6 do
    (map2 (\x y -> 0.5 * (x + y)) v (rotate 1 v), i + 1)).0) xss ks
  let sums = map (\xs -> (loop (v, i) = (map abs xs, 0i32) while i < 20 && reduce (+) 0 v > 1.0 do
    (map2 (\x y -> 0.3 * x + 0.3 * y) v (reverse v), i + 1))) xss
  let element = map (\xs -> loop v = map abs xs while v[0] > 0.5 || v[n - 1] > 0.5 do
    map2 (\x y -> 0.25 * (x + y)) v (rotate (-3) v)) xss
  let two = map2 (\xs k -> (loop (v, c, i) = (xs, replicate n 0i32, k % 3) while i < 5 do
    let at = argmax v
    in (map2 (\x y -> 0.5 * x + 0.25 * y) v (rotate 2 v), c with [at] <- c[at] + i, i + 1))) xss ks
  let double = map2 (\xs k -> (loop (v, h) = (xs, 1i32) while h < n - k % 3 do
    (generate n (\i -> v[i] + (if i >= h then v[i - h] else 0)), 2 * h)).0) xss ks
  in (times, sums, element, two, double)
