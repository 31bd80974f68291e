-- fuzz: seed=1 b=2 n=4099
-- Long rows of which each is used twice, one of them an array of pairs.
entry rows [b] [n] (xs: [b][n]f32) : ([b][n]f32, [b][n]f32) =
  let waves = map (\r -> let f = map (\x -> x * x + 1) r in map2 (+) f (rotate 1 f)) xs
  let flux = map (\r ->
    let e = pad 1 1 clamp r
    let f = map2 (\p q -> (p - q, p * q)) (init e) (tail e)
    in map3 (\c (l, _) (_, q) -> c + l * q) r (init f) (tail f)) xs
  in (waves, flux)
