-- fuzz: seed=1 n=6 m=7
-- The windows of a padded matrix and of three dimensions, and the sums of runs of equal keys.
-- gen: is=whole:0..3
entry windows_of_dimensions [n][m] (xs: [n][m]f32) (is: [n]i32) =
  (map_2d (\w -> maximum (join w)) (slide_2d 3 1 (pad_2d 0 2 mirror xs)),
    map_3d (\w -> sum (join (join w))) (slide_3d 3 1 (pad_3d 1 1 0 [xs, xs])),
    reduce_by_key (+) 0 is (map head xs))
