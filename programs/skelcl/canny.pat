import "../lib/stencil"

let bell = [[2.0, 4, 5, 4, 2], [4, 9, 12, 9, 4], [5, 12, 15, 12, 5], [4, 9, 12, 9, 4], [2, 4, 5, 4, 2]]

-- The magnitude of the gradient, and its direction: across, down, or along one of the diagonals (0 to 3).
def gradient (w: [3][3]f32) : (f32, i32) =
  let x = weighted [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]] w
  let y = weighted [[-1, -2, -1], [0, 0, 0], [1, 2, 1]] w
  let direction =
    if abs y <= 0.41421356 * abs x then 0
    else if abs x <= 0.41421356 * abs y then 1
    else if x * y > 0 then 2
    else 3
  in (sqrt (x * x + y * y), direction)

-- The magnitude, or 0 where a neighbour in the direction of the gradient has a greater one.
def thin (w: [3][3](f32, i32)) : f32 =
  let (x, direction) = w[1, 1]
  let (before, behind) =
    if direction == 0 then (w[1, 0].0, w[1, 2].0)
    else if direction == 1 then (w[0, 1].0, w[2, 1].0)
    else if direction == 2 then (w[0, 0].0, w[2, 2].0)
    else (w[0, 2].0, w[2, 0].0)
  in if x >= before && x >= behind then x else 0

-- Canny's edges: a blurred image's gradient, thinned, where it is at least `high`, or at least `low` and connected with such a place.
-- gen: low=const:40 high=const:80 image=uniform:0..255
entry canny [n] [m] (low: f32) (high: f32) (image: [n][m]f32) : [n][m]bool =
  let blurred = map_2d (\w -> weighted bell w / 159) (windows_2d 2 image)
  let edges = map_2d thin (windows_2d 1 (map_2d gradient (windows_2d 1 blurred)))
  let (connected, _) =
    loop (strong, changed) = (map_2d (>= high) edges, true) while changed do
      let next = map2_2d (\x w -> x >= low && or (join w)) edges (windows_2d 1 strong)
      in (next, or (join (map2_2d (!=) next strong)))
  in connected
