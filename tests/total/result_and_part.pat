-- fuzz: seed=1 n=7 m=19

entry matstats [n][m] (x: [n][m]f32) (y: [n][m]f32) : ([n][m]f32, [n][m]f32) = let s = map2 (map2 (+)) x y in (map (map (* 2)) s, s)
