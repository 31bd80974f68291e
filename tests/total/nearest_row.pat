-- fuzz: seed=1 q=37 n=130 d=6

-- The least distance with the index of its row.
entry nearest [q] [n] [d] (Q: [q][d]f32) (X: [n][d]f32) : ([q]f32, [q]i32) =
  unzip (map (\a ->
    zip (map (\b -> reduce (+) 0 (map2 (\u v -> (u - v) ** 2) a b)) X) (iota n)
      |> reduce (\(d1, i1) (d2, i2) -> if d1 < d2 || (d1 == d2 && i1 <= i2) then (d1, i1) else (d2, i2))
           (f32.highest, i32.highest)) Q)
