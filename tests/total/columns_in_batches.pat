-- fuzz: seed=1 a=2 b=300 c=5
-- Columns of the matrices of a batch, which are longer than a work-item should go through.
entry f [a][b][c] (x: [a][b][c]f32) : [a][c](i32, f32, f32) =
  map
    (\m ->
      map
        (\v ->
          let mean = sum v / f32.i32 b in
          (argmax v, maximum v, sum (map (\e -> (e - mean) ** 2) v) / f32.i32 b))
        (transpose m))
    x
