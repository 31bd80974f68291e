-- fuzz: seed=1 b=2 g=3 k=70

entry groups_of_rows [b][g][k] (x: [b][g][k]f32) : [b][g * k]f32 =
  map (\r -> join (map (\grp -> let m = reduce (+) 0 grp in map (+ m) grp) r)) x
