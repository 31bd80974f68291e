-- fuzz: seed=1 n=7
-- gen: xs=whole:-3..4 ys=whole:-3..4
-- Products of complex numbers in bins at places that are known: each part of a product needs both parts of the bin.
entry products_in_bins [n] (xs: [n]i32) (ys: [n]i32) : [n]([5]i32, [5]i32) =
  map2
    (\x y ->
      unzip
        (histogram
          (\(a, b) (c, d) -> (a * c - b * d, a * d + b * c))
          (1, 0)
          5
          (generate 3 (\i -> 4))
          (generate 3 (\i -> (x + i, y - i)))))
    xs
    ys
