-- The nearer of two, that with the lower number where both are as near.
def nearer (d: f32, i: i32) (e: f32, j: i32) = if e < d || e == d && j < i then (e, j) else (d, i)

-- The nearest neighbour (Rodinia nn, of many places): how far it is to the nearest record of a
-- latitude and a longitude, and its number.
-- gen: places=whole:-90..90 records=whole:-90..90
entry nn [n][m] (places: [n](f32, f32)) (records: [m](f32, f32)) : [n](f32, i32) =
  map
    (\(lat, long) ->
      let (d, i) =
        map2 (\(a, b) i -> ((lat - a) * (lat - a) + (long - b) * (long - b), i)) records (iota m)
          |> reduce_comm nearer (f32.inf, i32.highest) in
      (sqrt d, i))
    places
