-- fuzz: seed=1 t=5 n=19
-- Loops of the host with scalars beside rows in their state: a time, two scalars that depend on each other, a choice between
-- steps, histories of both, scans, and a scalar that the rows decide.
entry f [t] [n] (X: [t][n]f32) (c: [n]f32) (dts: [t]f32) (steps: i32) :
  (([n]f32, f32), ([n]f32, [n]f32, i32), ([t][n]f32, [t]f32, f32), [t](f32, [n]f32), [t](f32, [n]f32, i32), ([n]f32, f32)) =
  let (x, time) = loop (x, time) = (c, 0.5) for k < steps do
    let new = map (\a -> a * 0.5 + time) x
    in (new, time + 0.25)
  let (p, v, seed) = loop (p, v, seed) = (c, map (* 2) c, 1i32) for k < t do
    let seed = (seed * 77 + 5) % 100
    let w = map2 (\a b -> b - a * f32.i32 seed * 0.01) p v
    in if seed < 50 then (map2 (\a b -> a + b * dts[k]) p w, w, seed) else (map (* 0.5) p, v, seed + 1)
  let (out, _, times, time2) = loop (out, s, times, time) = (X, c, dts, 0.0) for k < t do
    let time = time + dts[k]
    let s = map2 (\a b -> 0.75 * a + b * time) s X[k]
    in (out with [k] <- s, s, times with [k] <- time, time)
  let both = scanSeq (\(time, r) (dt, row) -> (time + dt, map2 (\a b -> a * 0.5 + b * time) r row)) (1, c) (zip dts X)
  let three = scanSeq (\(time, r, k) (dt, row) -> (time + dt, map2 (\a b -> a * time + b * f32.i32 k) r row, k + 1)) (0.5, c, 1i32) (zip dts X)
  let (y, norm) = loop (y, norm) = (c, 1.0) for k < t do
    let y = map (/ (1 + norm * norm)) y
    in (y, sum y)
  in ((x, time), (p, v, seed), (out, times, time2), both, three, (y, norm))
