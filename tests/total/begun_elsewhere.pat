-- fuzz: seed=1 n=100 m=12

-- The initial values are not neutral for their operators.
-- gen: is=whole:0..m
entry begun [n][m] (xs: [n]i32) (rows: [n][m]i32) (is: [n]i32) (c: i32)
    : (i32, [n]i32, [m]i32, [m]i32, [n](i32, i32), (i32, i32)) =
  (reduce max 3 xs,
   scan (+) c xs,
   reduce (map2 max) rows[0] rows,
   histogram (+) (c * 2) m is xs,
   map (\r -> reduce (\(a, b) (c, d) -> (a + c, min b d)) (r[1], 0) (zip r r)) rows,
   reduce_comm (\(a, b) (c, d) -> (a + c, max d b)) (1, 1) (zip xs xs))
