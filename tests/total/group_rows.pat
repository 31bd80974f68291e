-- fuzz: seed=1 b=2 k=5 d=19

-- A row of each matrix changes in each step, and is computed from all rows.
entry deflate [b][k][d] (as: [b][k][d]f32) : [b][k][d]f32 =
  map
    (\a ->
      loop q = a for i < k do
        let v = q[i]
        let cs = map (\r -> sum (map2 (*) v r) / f32.i32 (length v)) q
        let s = sum cs in
        q with [i, :] <- map2 (\x y -> 0.5 * x - s * y) v q[k - 1 - i])
    as
