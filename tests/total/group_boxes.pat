-- fuzz: seed=1 b=3 n=41

-- The best interval of each row is taken, and those that overlap it are dropped: all elements of the state change.
entry boxes [b][n] (scores: [b][n]f32) (los: [b][n]f32) : [b][6]i32 =
  map2
    (\sc lo ->
      (loop (live, picked) = (sc, replicate 6 (-1)) for k < 6 do
        let j = argmax live
        let l = lo[j]
        let left = map2 (\s x -> if abs (x - l) < 0.25 then f32.lowest else s) live lo in
        (left with [j] <- f32.lowest, picked with [k] <- j)).1)
    scores
    los
