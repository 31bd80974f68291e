-- fuzz: seed=1 n=300

-- The steps of the loop are reductions of the whole array: kernels, which the host repeats.
entry bisection [n] (xs: [n]f32) (k: i32) : f32 =
  let (lo, hi) = loop ((lo, hi) = (-4, 4)) for i < 12 do
    let mid = (lo + hi) * 0.5
    let c = reduce (+) 0 (map (\x -> i32.bool (x <= mid)) xs)
    in if c > k then (lo, mid) else (mid, hi)
  in hi
