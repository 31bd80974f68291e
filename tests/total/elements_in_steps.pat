-- fuzz: seed=1 q=3 n=13 d=5

-- A loop goes through elements that are computed of a product and of arrays that all rows share.
entry nearest [q][n][d] (queries: [q][d]f32) (points: [n][d]f32) (labels: [n]i32) : [q](f32, i32) =
  let norms = map (\p -> sum (map (** 2) p)) points in
  map
    (\query ->
      let dist = map3 (\p norm l -> (norm - 2 * sum (map2 (*) query p), l % 8)) points norms labels in
      loop best = (f32.highest, -1) for (x, l) in dist do if x < best.0 then (x, l) else best)
    queries
