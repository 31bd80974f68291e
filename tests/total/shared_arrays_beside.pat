-- fuzz: seed=1 h=5 w=4

-- Two computed arrays, and the number of the step, are captured by both maps.
entry z_shared_arrays_beside [h] [w] (F: [h][w]f32) (G: [h][w]f32) : [h][w][3]f32 =
  (loop (H, K) = (map (map (* 2)) F, map (map (+ 1)) G) for t < 3 do
     let next = tabulate_2d h w (\i j ->
       let s = F[i, j] + 0.5 * H[(i + 1) % h, j] - K[i, j] + f32.i32 t
       in map (\q -> s * H[i, (j + i32.i32 q) % w] + K[(i + q) % h, j]) (iota 3))
     in (map (map sum) next, map (map (\v -> v[0] - v[2])) next)
  ) |> (\(H, K) -> tabulate_2d h w (\i j ->
     let s = H[i, j] - K[j % h, i % w] in map (\q -> s + H[i, (j + q) % w]) (iota 3)))
