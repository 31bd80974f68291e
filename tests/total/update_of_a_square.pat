-- fuzz: seed=231150175275211
entry update_of_a_square =
  loop (xs, i) = (replicate 3 (replicate 2 4), 0) while i < 1 do (xs with [i, i] = i, i + 1)
