-- Sound in a room: the pressure in the two last of `steps` steps of the wave equation, from that in the two steps before. `absorption` is
-- what the walls absorb, around the grid.
-- gen: steps=const:2 absorption=const:0.1 before=uniform:-1..1 now=uniform:-1..1
entry acoustic [n] [m] [k] (steps: i32) (absorption: f32) (before: [n][m][k]f32) (now: [n][m][k]f32)
  : ([n][m][k]f32, [n][m][k]f32) =
  let courant = 1 / sqrt 3.0
  let inside i n = (if i > 0 then 1 else 0) + (if i < n - 1 then 1 else 0)
  in
    loop (before, now) for step < steps do
      let padded = now |> map (map (pad 1 1 0) >-> pad 1 1 0) |> pad 1 1 0
      let next i j l =
        let neighbours = f32.i32 (inside i n + inside j m + inside l k)
        let sum =
          padded[i, j + 1, l + 1] + padded[i + 2, j + 1, l + 1] + padded[i + 1, j, l + 1]
            + padded[i + 1, j + 2, l + 1]
            + padded[i + 1, j + 1, l]
            + padded[i + 1, j + 1, l + 2]
        let loss = 0.5 * courant * absorption * (6 - neighbours)
        let swing = (2 - courant * courant * neighbours) * now[i, j, l] + courant * courant * sum
        in (swing - (1 - loss) * before[i, j, l]) / (1 + loss)
      in (now, tabulate_3d n m k next)
