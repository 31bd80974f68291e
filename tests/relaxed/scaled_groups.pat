-- fuzz: seed=1 m=9 o=37 g=4
-- The scale of a group is a factor of the group's sum.
entry linear [m][o][g] (x: [m][32 * g]f32) (w: [o][g][32]i8) (scale: [o][g]f32) : [m][o]f32 =
  map
    (\xr ->
      map2
        (\wr sr ->
          sum (map3 (\xg wg s -> s * sum (map2 (\a b -> a * f32.i8 b) xg wg)) (split 32 xr) wr sr))
        w
        scale)
    x
