-- fuzz: seed=1 n=23
-- gen: is=whole:-9..9
-- Pairs in the order of the first, and of the second component where those are equal.
entry sort_by_pairs [n] (xs: [n]f32) (is: [n]i32) : ([n](i32, f32), [n]i32) =
  (sort_by (\(i, x) (j, y) -> i < j || (i == j && x >= y)) (zip is xs),
    sort_by (\i j -> i % 3 <= j % 3) is)
