-- fuzz: seed=1 b=3 c=4 p=70

-- Each image less the mean of all its channels, times a scale for each channel: a group goes through the channels.
entry centred [b][c][p] (x: [b][c][p]f32) (scale: [c]f32) : [b][c][p]f32 =
  map (\image ->
    let mean = reduce (+) 0 (join image) / f32.i32 (c * p)
    in map2 (\channel s -> map (\v -> (v - mean) * s) channel) image scale) x
