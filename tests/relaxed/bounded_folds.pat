-- fuzz: seed=1 n=71
-- Loops whose number of steps depends on counters: sums of prefixes, and of every other element behind a place.
entry f [n] (xs: [n]f32) : ([n]f32, [n]i32) =
  let sums = map (\i -> loop acc = 1f32 for k < i + 1 do acc + xs[k] * xs[i - k]) (iota n)
  let evens = map (\i -> loop c = 0i32 for k < (i + 140) / 2 do if xs[k % 71] > 0 then c + 1 else c) (iota n)
  in (sums, evens)
