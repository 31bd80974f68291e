-- fuzz: seed=1 b=2 c=8 r=3 p=4099
-- Two layers of a short vector between what few, long rows are reduced to and what is done with their elements.
def linear W x = map (\row -> sum (map2 (*) row x)) W

entry gates [b][c][r][p] (x: [b][c][p]f32) (V: [r][c]f32) (W: [c][r]f32) : [b][c][p]f32 =
  map
    (\img ->
      let means = map (\plane -> sum plane / f32.i32 p) img
      let gates = means |> linear V |> map (max 0) |> linear W |> map (\v -> 1 / (1 + exp (-v))) in
      map2 (\g plane -> map (* g) plane) gates img)
    x
