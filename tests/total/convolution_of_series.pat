-- fuzz: seed=1 b=3 ci=4 co=5 n=303
-- With pad and slide, for each image; the result in another order than the product.
entry conv1d [b][ci][co][n] (x: [b][ci][n]f32) (wt: [co][ci][5]f32) : [b][n][co]f32 =
  map (\img -> let p = map (pad 2 2 clamp) img in
    map (\j -> map (\k -> sum (map2 (\row kr -> sum (map2 (*) (tabulate 5 (\d -> row[j + d])) kr)) p k)) wt) (iota n)) x
