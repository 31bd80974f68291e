-- fuzz: seed=2 b=5 n=9
-- gen: xss=whole:-9..9

-- Two elements change places, under a condition.
entry bubble [b] [n] (xss: [b][n]i32) : [b][n]i32 =
  map (\r -> loop (xs = r) for s < n * n do
    let i = s % (n - 1)
    in if xs[i] > xs[i + 1] then (xs with [i] <- xs[i + 1]) with [i + 1] <- xs[i] else xs) xss
