-- fuzz: seed=1 n=37 d=5 e=8

entry gate [n] [d] [e] (x: [n][d]f32) (w: [e][d]f32) : ([n]i32, [e]i32) =
  let best (v1, i1) (v2, i2) = if v1 > v2 || (v1 == v2 && i1 < i2) then (v1, i1) else (v2, i2)
  let route row =
    let logits = map (\we -> reduce (+) 0 (map2 (*) row we)) w
    let (_, i) = reduce best (f32.lowest, i32.highest) (zip logits (iota e))
    in i
  let expert = map route x
  in (expert, histogram (+) 0 e expert (replicate n 1))
