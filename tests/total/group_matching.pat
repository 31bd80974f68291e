-- fuzz: seed=1 b=2 n=5 m=37

-- Each row of a matrix takes the least element whose column is free; -1 is outside of both arrays.
entry matching [b][n][m] (costs: [b][n][m]f32) : [b][n]i32 =
  map
    (\c ->
      (loop (taken, got, cost) = (replicate m false, replicate n (-1), 0f32) for i < n do
        let free = map2 (\x t -> if t then f32.highest else x) c[i] taken
        let j = argmin free in
        ( taken with [j] <- true
        , got with [if cost > 9 then -1 else i] <- j
        , cost + free[j]
        )).1)
    costs
