-- fuzz: seed=1 b=3 n=64 m=128

entry turned_batch [b][n][m] (a: [b][n][m]i32) : [b][m][n]i32 = map transpose a
