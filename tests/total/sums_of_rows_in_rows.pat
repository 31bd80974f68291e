-- fuzz: seed=1 b=3 m=4 s=5 k=2
-- gen: x=whole:-4..5 y=whole:-4..5 w=whole:-4..5
entry sums_of_rows_in_rows [b] [m] [s] [k] (x: [b][m][s]f32) (y: [b][m][s]f32) (w: [k][s]f32) =
  (map (\g -> let mu = sum (map sum g) in (mu, sum (map (\r -> sum (map (\e -> (e - mu) * e) r)) g))) x,
   map2 (\g h -> maximum (map2 (\r q -> maximum (map2 (*) r q)) g h)) x y,
   map (\g -> sum (map (\r -> sum (map (\c -> sum (map2 (*) c r)) w)) g)) x)
