-- fuzz: seed=1 d=5 n=71
-- A loop through a row that is computed, beside a sum of the row: one work-item of a group runs the loop.
entry runs [d][n] (prices: [d][n]f32) : ([d]i32, [d]f32) =
  unzip
    (map
      (\p ->
        let change = map2 (-) p[1:n] p[0:n - 1]
        let best =
          (loop (best, now) = (0i32, 0i32) for i < n - 1 do
            let next = if change[i] > 0 then now + 1 else 0 in (max best next, next)).0 in
        (best, sum change))
      prices)
