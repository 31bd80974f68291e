-- fuzz: seed=1 t=6 n=19
-- Loops of the host that store a row in each step: all states, those before a step, backwards, with numbers of the step, and with
-- rows of tuples and of rows. Elements of rows never meet, but in the last loop.
entry f [t] [n] (X: [t][n]f32) (c: [n]f32) (dts: [t]f32) :
  ([t][n]f32, [n]f32, [t][n]f32, [t][n](f32, f32), [t][n]f32, [t][n][2]f32, [t][n]f32) =
  let zeros = replicate t (replicate n 0)
  let (all, last) = loop (out, s) = (zeros, c) for k < t do
    let new = map3 (\a b d -> 0.5 * a + b * d) s X[k] c
    in (out with [k] <- new, new)
  let (before, _, _) = loop (out, x, v) = (zeros, c, replicate n 1) for k < t do
    let out = out with [k] <- x
    let v = map2 (\x v -> v - x * dts[k]) x v
    in (out, map2 (\x v -> x + v * dts[k]) x v, v)
  let (pairs, _) = loop (out, s) = (replicate t (zip c c), zip c c) for k < t do
    let new = map (\(p, v) -> (p + v * 0.1, v - p * f32.i32 k)) s
    in (out with [k] <- new, new)
  let (back, _) = loop (out, s) = (zeros, replicate n 0) for k < t do
    let i = t - 1 - k
    let s = map2 (\a b -> a * 0.9 + b) s X[i]
    in (out with [i] <- s, s)
  let (rows, _) = loop (out, s) = (replicate t (replicate n [1, 2]), map (\x -> [x, -x]) c) for k < t do
    let new = map2 (\r x -> map (\y -> y * 0.5 + x) r) s X[k]
    in (out with [k] <- new, new)
  let (meet, _) = loop (out, s) = (zeros, c) for k < t do
    let new = map2 (\a b -> a * 0.5 + b) (rotate 1 s) X[k]
    in (out with [k] <- new, new)
  in (all, last, before, pairs, back, rows, meet)
