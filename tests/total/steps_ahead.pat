-- fuzz: seed=1 t=4 n=5 m=7
-- Loops of the host whose steps compute something without the state: from the number of the step, from nothing of the loop, with
-- names of the step, in a loop in a loop, and in a branch.
entry f [t] [n] [m] (X: [t][n]f32) (W: [m][n]f32) (s0: [m]f32) (is: [t]i32) :
  ([t][m]f32, [m]f32, f32, [m]f32) =
  let (out, last) = loop (out, s) = (replicate t s0, s0) for k < t do
    let x = X[(k + 1) % t]
    let g = map (\w -> sum (map2 (*) w x)) W
    let c = sum X[0] * 0.1
    let new = map3 (\a b r -> tanh (a * 0.5 + b + c * r)) s g (rotate 1 s)
    in (out with [k] <- new, new)
  let total = loop a = 0 for k < t do a * 0.5 + maximum X[k] * f32.i32 is[k]
  let far = loop s = s0 for k < t do
    let s = if is[k] > 1 then map (+ sum X[k]) s else s
    in loop s = s for j < n do map2 (\a b -> a * 0.5 + b) (rotate 1 s) (map (\w -> sum (map (* w[j]) X[k])) W)
  in (out, last, total, far)
