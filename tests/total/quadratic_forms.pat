-- fuzz: seed=1 n=260 d=16 k=16
-- The rows of these products depend on the sample and on the class; what follows them chooses.
entry nearest [n][d][k] (xs: [n][d]f32) (means: [k][d]f32) (prec: [d][d]f32) : ([n]i32, [n]f32) =
  unzip
    (map
      (\x ->
        let dist =
          map
            (\mu ->
              let diff = map2 (-) x mu
              let pd = map (\row -> sum (map2 (*) row diff)) prec in
              sum (map2 (*) diff pd))
            means
        let best = argmin dist in
        (best, dist[best]))
      xs)
