-- fuzz: seed=1 n=7 m=13 d=32

entry attnv [n][m][d] (q: [n][d]f32) (k: [m][d]f32) (v: [m][d]f32) : [n][d]f32 =
  map (\qr -> let s = map (\kr -> reduce (+) 0 (map2 (*) qr kr)) k let mx = reduce max f32.lowest s let e = map (\x -> exp (x - mx)) s let t = reduce (+) 0 e in map (\vc -> reduce (+) 0 (map2 (*) e vc) / t) (transpose v)) q
