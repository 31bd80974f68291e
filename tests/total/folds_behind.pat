-- fuzz: seed=1 n=71
-- Loops that read what lies behind a place: up to the end, and in a window.
entry f [n] (xs: [n]i32) : ([n]i32, [n]i32) =
  let behind =
    map (\i -> loop acc = 1i32 for d < n - 1 - i do let k = i + 1 + d in acc + xs[k]) (iota n)
  let window = map (\i -> loop acc = 0i32 for d < min 66 (n - i) do max acc xs[i + d]) (iota n) in
  (behind, window)
