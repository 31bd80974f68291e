-- fuzz: seed=2 b=3 t=35 d=33 f=20

-- A product in a batch, with a name, whose rows a function of rows reads with those of another matrix.
def dot [n] (a: [n]f32) (b: [n]f32) : f32 = sum (map2 (*) a b)

entry backward [b][t][d][f] (R: [b][t][d]f32) (dU: [b][t][f]f32) (W: [d][f]f32) : [b][t][d]f32 =
  map2
    (\r u ->
      let G = map (\x -> map (dot x) W) u in
      map2
        (\x g ->
          let s = rsqrt (dot x x / f32.i32 d + 1e-3)
          let c = dot x g * s in
          map2 (\v w -> w * s - v * c) x g)
        r
        G)
    R
    dU
