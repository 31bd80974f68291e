def nearer (d: f32, i: i32) (e: f32, j: i32) = if e < d then (e, j) else (d, i)

-- The means of the points that are nearest to each centre.
def means [n] [k] [d] (points: [n][d]f32) (centres: [k][d]f32) : [k][d]f32 =
  let nearest =
    map
      (\p ->
        let distance c = sum (map2 (\x y -> (x - y) * (x - y)) p c)
        in (reduce nearer (f32.inf, 0) (map2 (\c i -> (distance c, i)) centres (iota k))).1)
      points
  let counts = hist (+) 0 k nearest (replicate n 1.0)
  let sums = hist (map2 (+)) (replicate d 0) k nearest points
  in map2 (\row count -> map (/ count) row) sums counts

-- K-means (Accelerate's benchmark): the centres of `k` clusters, and the number of steps until no coordinate of a centre moves by
-- more than 0.01. The first centres are the first points.
entry kmeans [k] [n] [d] (k: i32) (points: [n][d]f32) : ([k][d]f32, i32) =
  let first = generate k (\i -> points[i])
  let (centres, _, steps) =
    loop (centres, moved, steps) = (first, true, -1) while moved do
      let next = means points centres
      in (next, any (any (> 0.01)) (map2 (map2 (\a b -> abs (a - b))) centres next), steps + 1)
  in (centres, steps)
