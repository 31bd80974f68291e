-- fuzz: seed=1 n=3 m=130

-- A loop that takes one element of its row after the other: the row is updated in each step, and so are the small results.
entry top [n][m] (xs: [n][m]f32) : ([n][4]f32, [n][4]i32) =
  unzip
    (map
      (\row ->
        let (_, vals, idx) =
          loop (cur, vals, idx) = (row, replicate 4 0f32, replicate 4 0) for k < 4 do
            let j = argmax cur in
            (cur with [j] <- f32.lowest, vals with [k] <- cur[j], idx with [k] <- j)
        in (vals, idx))
      xs)
