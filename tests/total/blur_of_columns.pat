-- fuzz: seed=1 h=67 w=45

-- A blur along the columns, then the range of all windows of 3x3: padded in two dimensions.
entry blurred [h][w] (a: [h][w]f32) : [h][w]f32 =
  let columns = a |> transpose |> map (\c -> pad 2 2 clamp c |> slide 5 1 |> map (\v -> v[0] + 2 * v[2] + v[4])) |> transpose
  let windows = columns |> map (pad 1 1 mirror) |> pad 1 1 wrap |> map (slide 3 1) |> slide 3 1 |> map transpose
  in map (map (\v -> let all = join v in reduce max f32.lowest all - reduce min f32.highest all)) windows
