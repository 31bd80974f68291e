-- fuzz: seed=8 b=5 n=21 m=6

-- Loops over arrays whose steps go through the array in parallel: a binomial tree, a state of two arrays, and a scan in each step.
entry loops [b] [n] [m] (s: [b]f32) (xss: [b][n]f32) (ks: [m]i32) =
  let tree = map (\si ->
    let leaf = generate (n + 1) (\j -> max 0.0 (si - 0.1 * f32.i32 j))
    in (loop (v = leaf) for t < n do generate (n + 1) (\j -> 0.5 * (v[j] + v[min n (j + 1)])))[0]) s
  let both = map (\xs -> loop (a, c) = (xs, map (* 2) xs) for t < 7 do
    (map2 (\x y -> 0.5 * (x + y)) a (rotate 1 c), map2 max c (reverse a))) xss
  let sums = map (\xs -> loop (v = xs) for t < 4 do map (* 0.25) (scan (+) 0 (rotate (-1) v))) xss
  in (tree, both, sums)
