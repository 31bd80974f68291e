-- fuzz: seed=1 n=3 c=4 h=9 w=11

-- The sums of windows of images with several channels, each with a factor.
entry smooth [n][c][h][w] (x: [n][c][h][w]f32) (k: [c]f32) : [n][c][h][w]f32 =
  map
    (\image ->
      map2
        (\plane a -> map (\row -> map (\s -> a * sum s) (slide 3 1 (pad 1 1 0 row))) plane)
        image
        k)
    x
