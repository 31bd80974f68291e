-- The squared distance of two vectors: the sum of the squares of their differences.
--
-- A vector of n floats has the type `[n]f32`. The parameter `[n]` says that both vectors have the same length.
-- `map2` computes each element from those of two vectors, and `reduce (+) 0` sums all elements.
--
-- The next line says which data are generated if a command gives no other: `eval` and `run` then need no options.
-- gen: n=const:100000 xs=normal ys=normal
entry distance [n] (xs: [n]f32) (ys: [n]f32) : f32 =
  map2 (\x y -> (x - y) * (x - y)) xs ys |> reduce (+) 0

-- A test, which `patsat snapshot` checks: the rules reach an end, so that all versions of the program are known.
-- expect stats size n=16384
-- | stop saturated
