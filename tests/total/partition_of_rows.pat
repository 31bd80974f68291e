-- fuzz: seed=2 n=7 m=13
-- gen: xss=whole:-9..9
entry partition_of_rows [n][m] (xss: [n][m]i32) : [n](i32, [m]i32) =
  map (partition (> 2)) xss
