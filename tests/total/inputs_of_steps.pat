-- fuzz: seed=1 t=4 b=3 i=9 h=10

-- A step multiplies its input and its state.
entry recurrent [t][b][i][h] (xs: [t][b][i]f32) (Wx: [h][i]f32) (Wh: [h][h]f32) : [b][h]f32 =
  loop hs = replicate b (replicate h 0f32) for x in xs do
    map2
      (\xv hv ->
        let z = map (\w -> sum (map2 (*) w xv)) Wx in
        map2 (\z w -> tanh (z + sum (map2 (*) w hv))) z Wh)
      x
      hs
