-- fuzz: seed=1 n=256 h=128
-- Products whose rows have a plain number of elements.
entry f [n][h] (x: [n]f32) (p: [n][16][2]f32) (w: [h][32]f32) (z: [h]f32) : ([n][h]f32, [n][h]f32) =
  let waves =
    map
      (\r ->
        let e = map (\j -> sin (f32.i32 j * r)) (iota 32) in
        map2 (\c b -> max 0 (b + sum (map2 (*) e c))) w z)
      x
  let pairs = map (\r -> map (\c -> sum (map2 (*) (flatten r) c)) w) p in
  (waves, pairs)
