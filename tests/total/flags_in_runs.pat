-- fuzz: seed=1 n=4096

entry f [n] (flags: [n]bool) : ([n]bool, i32) =
  let inside = scan (!=) false flags
  let runs = segmented_scan (+) 0 flags (map (\s -> if s then 0 else 1) flags) in
  (inside, maximum runs)
