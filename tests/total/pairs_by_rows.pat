-- fuzz: seed=1 n=23 m=19 d=13

-- Means, deviations and norms of each row, written where they are used.
def mean [k] (v: [k]f32) = reduce (+) 0 v / f32.i32 k
entry correlations [n][m][d] (X: [n][d]f32) (Y: [m][d]f32) : ([n][m]f32, [n][d]f32, [n][m]f32) =
  let pair x y =
    let a = mean x
    let b = mean y
    let s = reduce (+) 0 (map (\u -> (u - a) ** 2) x) + 0.5
    let t = reduce (+) 0 (map (\v -> (v - b) ** 2) y) + 0.5
    in reduce (+) 0 (map2 (\u v -> (u - a) * (v - b)) x y) / sqrt (s * t)
  in (map (\x -> map (\y -> pair x y) Y) X,
      map (\x -> map (\u -> (u - mean x) / (reduce max f32.lowest x + 9)) x) X,
      map (\x -> map (\y -> if x[0] > y[0] then mean x else mean y) Y) X)
