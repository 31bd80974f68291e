-- fuzz: seed=1 n=101
-- Choices in one part of what a histogram and a scatter take; a recurrence whose result another pass reads.
entry histogram_of_joined [n] (is: [n]i32) (xs: [n]f32) : ([n]f32, [n]f32) =
  let ps = loop ps = replicate n 2f32 for i < n - 1 do ps with [i + 1] <- 2 - 1 / ps[i]
  let sums = histogram (+) 0 n (concat is (rotate 1 is)) (concat xs (map2 (\i x -> if i % 3 == 0 then 0 else x / 2) is xs))
  in (sums, map2 (*) ps xs)
