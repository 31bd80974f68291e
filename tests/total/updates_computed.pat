-- fuzz: seed=6 n=40
-- gen: xs=normal is=whole:-2..50

-- Elements of a computed array are replaced; the places are given.
entry computed [n] (xs: [n]f32) (is: [2]i32) : [n]f32 =
  scatter (map (* 2) xs) [is[0], is[0] + 1] [0.5, 1.5]
