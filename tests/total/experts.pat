-- fuzz: seed=1 n=40 e=3 o=21 d=17
-- A product of each row with rows of rows, among other work.
entry experts [n][e][o][d] (x: [n][d]f32) (gate: [e][d]f32) (ws: [e][o][d]f32) : [n][o]f32 =
  map (\t ->
    let g = map (\r -> sum (map2 (*) t r)) gate
    let outs = map (\w -> map (\r -> max 0 (sum (map2 (*) t r))) w) ws
    in map (\c -> sum (map2 (*) c g)) (transpose outs)) x
