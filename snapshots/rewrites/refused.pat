-- Programs that are refused.
entry lengths [n][m] (xs: [n]f32) (ys: [m]f32) : [n]f32 =
  map2 (+) xs ys

-- expect error E0302 entry=lengths

entry nested [n][m] (A: [n][m]f32) : [n][m]f32 =
  mapGlb 0 (mapGlb 0 (+ 1)) A

-- expect error E0306 entry=nested
