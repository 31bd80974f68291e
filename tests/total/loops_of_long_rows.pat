-- fuzz: seed=1 b=3 h=33 w=32
-- gen: c=uniform:0..0.2 steps=whole:0..4
-- Loops in a map whose states are long: with a value of the row that the steps use, scalars in the state, and work behind the loop; one
-- in a map of maps; one that starts from nothing of the row.
entry loops [b] [h] [w] (xs: [b][h][w]f32) (c: [b]f32) (steps: i32) : ([b](f32, [h]f32), [b][2][h][w]f32, [b][h * w]f32) =
  let heat = map2 (\x k ->
    let m = reduce (+) 0 (map (reduce (+) 0) x) / f32.i64 (h * w)
    let (u, s) = loop (u, s) = (x, 0f32) for i < 3 do
      let v = map (\t -> map2 (\p q -> p + k * (q - m)) t[1] (map2 (+) t[0] t[2])) (slide 3 1 (pad 1 1 clamp u))
      in (v, s + v[0][0] * f32.i64 i)
    in (s + m, map (reduce max (-f32.inf)) u)) xs c
  let nested = map (\x -> map (\k -> loop u = x for i < steps do map (\r -> map (* k) (rotate 1 r)) u) [0.5f32, 2]) xs
  let empty = map (\k -> loop u = replicate (h * w) 0f32 for i < 4 do map2 (+) (rotate 1 u) (map (\j -> k * f32.i64 j) (iota (h * w)))) c
  in (heat, nested, empty)
