-- fuzz: seed=1 b=5 i=33 k=40 m=7

-- Two products of different rows in one element.
entry gate [b][i][k][m] (x: [b][i]f32) (h: [b][k]f32) (w: [m][i]f32) (u: [m][k]f32) : [b][m]f32 =
  map2
    (\xr hr -> map2 (\wr ur -> reduce (+) 0 (map2 (*) wr xr) + reduce (+) 0 (map2 (*) ur hr)) w u)
    x
    h
