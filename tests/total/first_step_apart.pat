-- fuzz: seed=1 p=3 m=17
-- The first step takes another value: its loop is split, and the rest goes on with the state that it left.
-- gen: xs=whole:0..10
entry first_step_apart [p][m] (xs: [p][m]i32) : [p][m + 1]i32 =
  map
    (\x ->
      let (hs, _) =
        loop (hs = iota (m + 1), f = last x) for j < m + 1 do
          let c = if j == 0 then 50 else x[j - 1] let f = f * 3 % 1001 + c in (hs with [j] <- f, f) in
      hs)
    xs
