-- fuzz: seed=1 n=4501

-- Few elements of a sorted array, equal ones in their order, and what a sort leaves last.
entry last_of_sorts [n] (xs: [n]i32) : ([7]i32, [5]i32, i32) =
  let small = map (% 50) xs in (drop (n - 7) (sort xs), take 5 (argsort small), last (sort xs))
