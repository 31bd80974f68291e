-- fuzz: seed=1 n=9 m=4 n1=7
-- gen: xs=normal is=whole:0..4 A=normal ys=normal

let near 'a [k] (f: a -> f32) (us: [k]a) : [k]f32 = map (\u : f32 -> f u `f32.min` 1) us

entry z [n][m] (xs: [n]f32) (is: [n]i32) (A: [m][n]f32) (ys: *[]f32) : ([m]f32, [m]i32, []f32, f32) =
  let sums = reduce_by_index (map (\row -> f32.sum row) A) (f32.+) 0 is xs
  let counts = hist (+) 0 m is (map (\_ -> 1) is)
  let (us, s) = loop (us, s) = (ys, 0f32) for _i < 2i64 do (#[sequential] near (* s) us, s + f32.i64 (length us))
  in (sums, counts, us, f32.maximum xs + s)
