-- fuzz: seed=1 n=5 t=8

-- The elements are rows, and so is a part of the state.
entry rows [n] [t] (A: [3][3]f32) (Z: [n][t][3]f32) : ([n][t][3]f32, [n][t]i32) =
  unzip (map (\z ->
    let (_, out, best) = loop (x, out, best) = (z[0], replicate t (replicate 3 1f32), replicate t 0) for k < t - 1 do
      let x = map2 (+) z[k + 1] (map (\r -> 0.25 * sum (map2 (*) r x)) A)
      in (x, out with [k + 1] <- x, best with [t - 1 - k] <- argmax x)
    in (out, best)) Z)
