-- fuzz: seed=1 n=300
-- A counting sort with more buckets than a tile has counters: by digits. Some numbers lie outside.
entry counting_sort_of_many [n] (k: i32) (is: [n]i32) (xs: [n]f32) : ([2000]i32, [n]f32, [n]i32) =
  let keys = map (\i -> i % (k + 10) - 5) is
  let (counts, sorted) = counting_sort 2000 keys (zip xs (iota n))
  let (xs, order) = unzip sorted
  in (counts, xs, order)
