-- fuzz: seed=5 n=71 m=5
-- gen: xs=whole:0..9 A=whole:0..2

-- Loops until nothing changes: the new state is compared with the old one.
entry loop_until_unchanged [n] [m] (xs: [n]i32) (A: [n][m]i32) : ([n]i32, [n][m]i32) =
  let (xs, _) = loop (xs, changed) = (xs, true) while changed do
    let ys = map (\w -> max w[0] (max w[1] w[2])) (slide 3 1 (pad 1 1 clamp xs))
    in (ys, or (map2 (!=) xs ys))
  let (A, _) = loop (A, sum) = (A, 0) while sum < 40 do
    let B = map2 (\row above -> map2 (\x y -> min 1 (x + y)) row above) A (rotate 1 A)
    in (B, sum + 7 + reduce (+) 0 (map (reduce (+) 0) B))
  in (xs, A)
