-- The `k` nearest neighbours of a place (Rodinia's NN): their distances, and their numbers among the records. Each step takes the
-- nearest of those that are left.
-- gen: k=const:5 latitude=const:30 longitude=const:90 latitudes=uniform:7..70 longitudes=uniform:0..360
entry nn [k] [n] (k: i32) (latitude: f32) (longitude: f32) (latitudes: [n]f32) (longitudes: [n]f32)
  : ([k]f32, [k]i32) =
  let distance a b = sqrt ((a - latitude) * (a - latitude) + (b - longitude) * (b - longitude))
  let (distances, numbers, _) =
    loop (distances, numbers, left) =
      (replicate k 0.0, replicate k 0, map2 distance latitudes longitudes)
    for i < k do
      let j = argmin left
      in (distances with [i] <- left[j], numbers with [i] <- j, left with [j] <- f32.inf)
  in (distances, numbers)
