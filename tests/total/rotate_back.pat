-- fuzz: seed=1 n=9 m=4

entry rotate_back [n][m] (a: [n][m]i32) : ([n][m]i32, [n]i32) =
  (map (rotate (-1)) (rotate (-2 * m) a), map (\r -> reduce (+) 0 (rotate (-3) r)) a)
