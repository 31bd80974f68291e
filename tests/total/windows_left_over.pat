-- fuzz: seed=1 n=11 m=14
-- Windows and slices at a distance that does not divide the length, and what is left over of chunks.
entry windows_left_over [n][m] (xs: [n][m]f32) (ys: [n]f32) =
  (map_2d (\w -> maximum (join w)) (slide_2d 3 2 (pad_2d 1 1 0 xs)),
    map sum (slide 2 2 ys),
    map sum (split 4 (take (n - n % 4) ys)),
    drop (n - n % 4) ys)
