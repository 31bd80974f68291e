-- fuzz: seed=1 n=37
-- Elements of short arrays at places that data decide: rows and columns of small matrices, in loops, read and updated.
entry f [n] (xs: [n][3][4]f32) (is: [n]i32) : ([n][4]f32, [n][3][4]f32, [n]f32, [n][3]i32) =
  let place k = (if k < 0 then -k else k) % 3
  in (map2 (\x i -> x[place i]) xs is,
      map2 (\x i ->
        loop a = x for k < 3 do
          let p = argmax (map (\r -> abs r[k]) a)
          let (top, other) = (a[k], a[p])
          let a = a with [p] <- top
          in a with [k] <- map (* 0.5) other) xs is,
      map2 (\x i -> (loop (a, s) = (x, 0) for k < 2 do (map (map (* 2)) a, s + a[place (i + k), k])).1) xs is,
      map (\i -> (replicate 3 0) with [place i] <- i) is)
