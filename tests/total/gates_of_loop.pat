-- fuzz: seed=1 t=3 b=9 d=17 h=18
-- A recurrent layer: products with the rows of several matrices, in the steps of a loop.
def affine [h] [d] (W: [h][d]f32) (b: [h]f32) (x: [d]f32) : [h]f32 =
  map2 (\row bi -> bi + sum (map2 (*) row x)) W b

entry gates_of_loop [t] [b] [d] [h] (xs: [t][b][d]f32) (h0: [b][h]f32) (Wi: [2][h][d]f32) (Wh: [2][h][h]f32)
    (bi: [2][h]f32) : [b][h]f32 =
  loop hid = h0 for x in xs do
    map2 (\xv hv ->
      let gi = map2 (\W b -> affine W b xv) Wi bi
      let gh = map (\W -> map (\row -> sum (map2 (*) row hv)) W) Wh
      in map3 (\a b h -> h / (1 + abs (a + b))) gi[0] gh[1] hv) x hid
