-- fuzz: seed=1 n=3 h=29 w=31

-- Two separable filters of each image of a batch, and a sum of what they give.
entry variances [n] [h] [w] (g: [3]f32) (X: [n][h + 2][w + 2]f32) : [n]f32 =
  map (\x ->
    let b t = transpose (map (\c -> map (\win -> sum (map2 (*) g win)) (slide 3 1 c))
      (transpose (map (\r -> map (\win -> sum (map2 (*) g win)) (slide 3 1 r)) t)))
    in sum (flatten (map2 (map2 (\p q -> p - q * q)) (b (map_2d (** 2) x)) (b x)))) X
