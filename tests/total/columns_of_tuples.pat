-- fuzz: seed=1 n=7 m=33

-- Functions of columns whose elements are tuples have a form that treats rows, too.
def lengths [n] (c: [n](f32, f32)) : [n]f32 = map (\(x, y) -> sqrt (x * x + y * y)) c
def steps [n] (c: [n](f32, (i32, f32))) : [n - 1](f32, i32) =
  map2 (\(a, (i, x)) (b, (j, y)) -> if i < j then (b - a, j) else (y - x, i)) c[:n - 1] c[1:]
def best [n] (c: [n]f32) (d: [n](f32, i32)) : (f32, i32) = let k = argmax c in (d[k].0 + c[0], d[n - 1 - k].1)
-- gen: A=normal B=normal C=whole:-9..9
entry tuples [n] [m] (A: [n][m](f32, f32)) (B: [n][m]f32) (C: [n][m]i32)
    : ([m][n]f32, [m][n]f32, [m][n - 1](f32, i32), [m](f32, i32)) =
  let mixed = map3 (map3 (\a b c -> (a.0, (c, b)))) A B C
  in ( map (map (\(x, y) -> x + y)) (transpose A)
     , map lengths (transpose A)
     , map steps (transpose mixed)
     , map2 best (transpose B) (transpose (map2 zip B C)) )
