-- fuzz: seed=1 n=6 m=5 n1=4

type mat [r][c] = [r][c]f32
let weight = 0.5
def outer 'a 'b [n][m] (op: a -> a -> b) (xs: [n]a) (ys: [m]a) : [n][m]b =
  map (\x -> map (\y -> x `op` y) ys) xs

entry z [n][m] (A: mat [n][m]) (xs: []f32) (ys: [2*n]f32) =
  let (d, k) = loop (d, k) = (outer (f32.-) xs xs, 0i32) for i < 3 do (map (map (* weight)) d, k + i)
  in (map (reduce (+) 0) A, d, map (+ f32.i32 k) ys)
