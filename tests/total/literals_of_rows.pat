-- fuzz: seed=1 b=5 n=7 m=6
-- Literals of rows that are computed element by element: butterflies of a transform in stages, rotations with captured angles, rows
-- of rows, rows beside rows that are there, and literals whose rows are reduced.
def stage [h] [s] (h: i32) (x: [2 * h * s](f32, f32)) : [2 * h * s](f32, f32) =
  let xs : [2][h][s](f32, f32) = map unflatten (unflatten x)
  let turn p = let t = -f32.pi * f32.i32 p / f32.i32 h in (cos t, sin t)
  let mul (a: f32, b: f32) (c: f32, d: f32) = (a * c - b * d, a * d + b * c)
  let add (a: f32, b: f32) (c: f32, d: f32) = (a + c, b + d)
  let sub (a: f32, b: f32) (c: f32, d: f32) = (a - c, b - d)
  in map3 (\p a b -> [map2 add a b, map2 (\u v -> mul (turn p) (sub u v)) a b]) (iota h) xs[0] xs[1]
       |> map join |> join

entry f [b] [n] [m] (X: [b][8](f32, f32)) (A: [n][m]f32) (angles: [n]f32) (c: [m]f32) :
  ([b][8](f32, f32), [n][2][m]f32, [3][n][m]f32, [n][2][m]f32, [n][2]f32) =
  let transformed = map (stage 4 >-> stage 2 >-> stage 1) X
  let turned = map2 (\r t -> [map2 (\x y -> cos t * x - sin t * y) r c, map2 (\x y -> sin t * x + cos t * y) r c]) A angles
  let planes = [map (map (* 2)) A, A, map2 (\r t -> map (+ t) r) A angles]
  let beside = map (\r -> [r, map sqrt (map abs r)]) A
  let reduced = map (\r -> [sum r, maximum r]) A
  in (transformed, turned, planes, beside, reduced)
