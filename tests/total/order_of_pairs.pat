-- fuzz: seed=1 n=4 m=97

-- Operators that choose by a total order are commutative.
entry ends [n][m] (xs: [n][m]f32) : [n](f32, i32, f32) =
  let first (a: f32, i: i32) (b: f32, j: i32) = if a < b || (a == b && i < j) then (a, i) else (b, j) in
  map
    (\row ->
      let (x, i) = zip row (iota m) |> reduce first (f32.highest, i32.highest) in
      (x, i, reduce (\a b -> if b < a then a else b) f32.lowest row))
    xs
