-- fuzz: seed=1 n=6 m=35

-- Functions of columns have a form that treats rows: windows, lists, choices, captured arrays, pairs, indices that data decide, loops.
def wave [n] (xs: [2*n]f32) : [2*n]f32 =
  let p = split 2 xs
  in map (\q -> q[0] + q[1]) p ++ map (\q -> q[0] - q[1]) p
def unwave [n] (xs: [2*n]f32) : [2*n]f32 =
  flatten (map2 (\s d -> [(s + d) / 2, (s - d) / 2]) xs[:n] xs[n:])
def softmax [n] (xs: [n]f32) : [n]f32 =
  let top = maximum xs
  let e = map (\x -> exp (x - top)) xs
  in map (/ sum e) e
def windows [n] (xs: [n]f32) : [n]f32 = pad 1 1 0 xs |> slide 3 1 |> map (reduce max (-9))
def choice [n] (is: [n]i32) (f: [n]f32) (xs: [n]f32) : [n](f32, f32) =
  map4 (\i a x y -> if x > 0 then (x * a, xs[i]) else (y, if y > a then xs[n - 1] else x)) is f xs (scan (+) 0 xs)
def damped [n] (xs: [n]f32) : f32 = loop s = 0 for k < n do 0.5 * s + xs[k]
-- gen: A=normal is=whole:0..2*n f=normal
entry columns [n] [m] (A: [2*n][m]f32) (is: [2*n]i32) (f: [2*n]f32)
    : ([2*n][m]f32, [2*n][m]f32, [2*n][m]f32, [m]f32, [2*n][m](f32, f32), [m]f32, [m][2*n]f32) =
  let T = transpose A
  let spread = map (\c -> let z = map2 (-) f c let top = maximum z in top + log (sum (map (\x -> exp (x - top)) z))) T
  in ( A |> transpose |> map wave |> transpose
     , A |> transpose |> map unwave |> transpose
     , A |> transpose |> map (softmax >-> windows) |> transpose
     , spread
     , transpose (map (choice is f) T)
     , map2 (\c s -> s * damped (map (* s) c)) T spread
     , map (\c -> reverse (sort c)) T )
