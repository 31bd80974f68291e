-- fuzz: seed=1 s=5 v=300

-- A loop over a scalar around a reduction of a row, which a group runs.
entry fourth [s][v] (xs: [s][v]f32) : [s]f32 =
  map
    (\row ->
      loop limit = f32.inf for k < 4 do
        reduce max f32.lowest (map (\x -> if x < limit then x else f32.lowest) row))
    xs
