-- fuzz: seed=1 h=3 t=7
-- What a function computes from scalars before it goes through its rows: in a name, in the inner function, of a counter, of an array that
-- a map computes, in nests, in a loop of the host, and beside a reduction of the row.
def softmax [n] (xs: [n]f32) : [n]f32 =
  let m = maximum xs
  let es = map (\x -> exp (x - m)) xs
  let s = sum es
  in map (/ s) es

entry f [h] [t] (q: [h][t][t]f32) (w: [h]f32) (v: [t]f32) (steps: i32) :
  ([h][t][t]f32, [h][t][t]f32, [h]f32, [h][t]f32, [h][t]f32, [h][t]f32, [h][t]f32) =
  let heads = map2 (\i m -> let s = exp2 (-8 * f32.i32 (i + 1)) in map (\r -> softmax (map (* s) r)) m) (iota h) q
  let causal = map3 (\i m a ->
    let slope = 1 / (1 + f32.i32 i + a * a)
    in map2 (\r row -> softmax (map2 (\c x -> if c <= r then x * slope - slope * f32.i32 (r - c) else -1e30) (iota t) row)) (iota t) m) (iota h) q w
  let sums = map2 (\a m -> let s = 1 / sqrt (1 + a * a) in sum (map (\r -> sum (map (\x -> sin (x * s)) r)) m)) w q
  let inner = map2 (\a m -> map (\x -> x * exp (-a * a) + a) (head m)) w q
  let us = map (\a -> exp (-a * a)) w
  let computed = map2 (\u m -> map2 (\x y -> u * x + y) (head m) v) us q
  let looped = loop x = computed for k < steps do map2 (\a r -> let s = cos (a * 3) in map (\y -> y * s + 0.5) r) w x
  let both = map2 (\a m -> let s = exp (-a) in let z = sum v * s in map (\x -> x * z + s) (head m)) w q
  in (heads, causal, sums, inner, computed, looped, both)
