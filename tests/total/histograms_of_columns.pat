-- fuzz: seed=1 n=19 d=5

-- gen: is=uniform:0..8
entry kmeans_upd [n][d] (pts: [n][d]f32) (is: [n]i32) : [8][d]f32 = transpose (map (\col -> histogram (+) 0 8 is col) (transpose pts))
