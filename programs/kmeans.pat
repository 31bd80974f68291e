def distance [d] (xs: [d]f32) (ys: [d]f32) : f32 =
  reduce (+) 0 (map2 (\x y -> (x - y) * (x - y)) xs ys)

-- The nearer of two, the first where both are as near.
def nearer (d: f32, i: i32) (e: f32, j: i32) = if e < d then (e, j) else (d, i)

-- The step of k-means that assigns points to clusters: the number of the nearest centroid, the lowest of
-- those that are equally near.
-- gen: points=whole:-16..16 centroids=whole:-16..16
entry kmeans [n][k][d] (points: [n][d]f32) (centroids: [k][d]f32) : [n]i32 =
  map
    (\p -> (map2 (\c i -> (distance p c, i)) centroids (iota k) |> reduce nearer (f32.inf, 0)).1)
    points
