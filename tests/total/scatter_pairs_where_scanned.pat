-- fuzz: seed=7 n=300
-- gen: ks=whole:0..3 xs=whole:-9..10
-- The values are pairs; each is moved behind those of smaller keys.
entry by_key [n] (ks: [n]i32) (xs: [n]f32) : ([n](i32, f32)) =
  let ones = scan (+) 0 (map (\k -> if k == 0 then 1 else 0) ks)
  let zeros = last ones
  let places = map3 (\k u i -> if k == 0 then u - 1 else zeros + i - u) ks ones (iota n)
  in scatter (zip ks xs) places (zip ks xs)
