-- fuzz: seed=1 b=3 n=11

-- The shortest paths from node 0 of each graph: one array is computed in each step, another one is updated.
entry paths [b][n] (ws: [b][n][n]f32) : [b][n]f32 =
  map
    (\w ->
      (loop (dist, done) = (generate n (\i -> if i == 0 then 0f32 else 1000), replicate n false) for _k < n do
        let u = argmin (map2 (\d f -> if f then f32.highest else d) dist done)
        let du = dist[u] in
        (map2 (\d x -> min d (du + abs x)) dist w[u], done with [u] <- true)).0)
    ws
