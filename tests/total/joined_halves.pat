-- fuzz: seed=1 b=2 h=3 d=64
-- Both halves of a row are computed and joined, and the joined row is read twice: a work-item of the second half has no element of a half.
entry joined_halves [b] [h] [d] (q: [b][h][2*d]f32) (K: [b][h][2*d]f32) : [b][h]f32 =
  let ang = tabulate d (\i -> 7 * exp (-9.0 * f32.i32 i / f32.i32 d))
  let rot x = concat (map3 (\a l h -> l * cos a - h * sin a) ang (x[:d]) (x[d:]))
    (map3 (\a l h -> l * sin a + h * cos a) ang (x[:d]) (x[d:]))
  in map2 (map2 (\x k -> let y = map (* 0.5) (rot x) in sum (map2 (*) y k) + maximum y)) q K
