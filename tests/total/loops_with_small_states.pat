-- fuzz: seed=1 d=9
-- gen: L=uniform:1..2 b=uniform:-4..4 A=uniform:1..2
entry loops_with_small_states [d] (L: [d][d]f32) (b: [d]f32) (A: [d][d]f32) =
  let z =
    loop z = b for k < d do
      let v = z[k] / L[k, k]
      in map2 (\i e -> if i == k then v else if i > k then e - L[i, k] * v else e) (iota d) z
  let (xs, steps) = loop (xs, s) = (z, 0) while s < 5 && maximum (map abs xs) > 0.001 do (map (* 0.5) xs, s + 1)
  in (z, xs, steps, loop A = A for k < d do map2 (\i row -> if i > k then map2 (\a p -> a - 0.01 * p * A[i, k]) row A[k] else row) (iota d) A)
