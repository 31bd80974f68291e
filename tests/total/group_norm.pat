-- fuzz: seed=1 b=3 g=2 c=5 p=67

-- Few rows in a nest of maps: statistics of each group, then a map over five dimensions.
entry group_norm [b] [g] [c] [p] (x: [b][g*c][p]f32) (gain: [g*c]f32) : [b][g*c][p]f32 =
  map (\image ->
    map2 (\group gs ->
      let all = join group
      let count = f32.i32 (c * p)
      let mean = reduce (+) 0 all / count
      let var = reduce (+) 0 (map (\v -> (v - mean) ** 2) all) / count
      let scale = rsqrt (var + 0.5)
      in map2 (\row k -> map (\v -> (v - mean) * scale * k) row) group gs)
      (split c image) (split c gain) |> join) x
