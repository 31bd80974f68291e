-- fuzz: seed=4 b=3 n=5 m=4
-- gen: xsss=normal

-- Rows change places, beside a number that depends on them.
entry rows [b] [n] [m] (xsss: [b][n][m]f32) : ([b][n][m]f32, [b]i32) =
  map (\xss -> loop (s, c) = (xss, 0) for i < n do
     let j = (i * 7 + 3) % n
     in ((s with [i, :] <- s[j, :]) with [j] <- s[i], if s[i, 0] < s[j, 0] then c + 1 else c)) xsss |> unzip
