-- fuzz: seed=7 n=7 m=40
-- gen: A=whole:-4..5

-- A step of a loop in a work-group exchanges long rows of its state, which the work-items copy together.
entry pivots [n][m] (A: [n][m][m]i32) : [n][m][m]i32 =
  map
    (\a ->
      loop a for k < 5 do
        let p = argmax (map2 (\i row -> if i >= k then abs row[k] else -1) (iota m) a)
        let swap i = if i == k then p else if i == p then k else i
        let a = map (\i -> a[swap i]) (iota m) in
        map2
          (\i row ->
            map2 (\j x -> if i > k && j >= k then (x - row[k] * a[k, j]) % 100 else x) (iota m) row)
          (iota m)
          a)
    A
