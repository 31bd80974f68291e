-- fuzz: seed=1 s=5 n=23
-- What is made of the results of sequential scans, element by element: maps, maps of several scans and arrays, scans of scans,
-- folds, named results, results that are used twice, tuples, and initial values that are computed for each row.
entry f [s] [n] (xs: [s][n]f32) (zs: [s]f32) :
  ([s][n]f32, [s][n]f32, [s][n]f32, [s]f32, [s][n](f32, i32), [s]([n]f32, [n]f32), [s][n]f32, [s]i32, [s][n]f32) =
  let smooth (k: f32) (z: f32) (r: [n]f32) = scanSeq (\acc x -> acc + k * (x - acc)) z r
  let maps = map (\r -> map (\x -> x * 2 + 1) (smooth 0.25 0 r)) xs
  let both = map (\r -> map2 (-) (smooth 0.25 (head r) r) (smooth 0.5 (head r) r)) xs
  let scans = map (\r -> let m = sum r / f32.i32 n in scanSeq max m (map2 (*) r (smooth 0.25 m r))) xs
  let folds = map2 (\r z -> let t = smooth 0.5 z r in reduce (+) 0 (map2 (\a b -> (a - b) * (a - b)) t r)) xs zs
  let tuples = map2 (\r z -> map3 (\(a, k) x y -> (a + x * y, k + 1)) (scanSeq (\(a, k) x -> (a * 0.5 + x, k + 1)) (z, 0i32) r) r (reverse r)) xs zs
  let twice = map (\r -> let t = smooth 0.25 0 r in (map (* 2) t, map (+ 1) t)) xs
  let back = map (\r -> reverse (map abs (smooth 0.5 1 (reverse (map (* 3) (smooth 0.25 1 r)))))) xs
  let counts = map (\r -> reduce (+) 0i32 (map (\x -> if x > 0 then 1 else 0) (smooth 0.75 0 r))) xs
  let deep = map2 (\r z -> loop r = r for k < 3 do map2 (\a b -> a - b * 0.5) (smooth 0.25 z r) r) xs zs
  in (maps, both, scans, folds, tuples, twice, back, counts, deep)
