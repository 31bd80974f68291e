-- fuzz: seed=1 b=3 n=6

-- Rows and then columns of a matrix change in the steps of a loop, under a condition and as often as an argument says.
entry rotated [b][n] (As: [b][n][n]f32) (sweeps: i32) : [b][n][n]f32 =
  map
    (\A ->
      loop A for _ < sweeps % 3 do
        loop A for p < n do
          loop A for q < n do
            if q > p
            then let (rp, rq) = (A[p], A[q])
              let A = A with [p] <- map2 (\x y -> 0.5 * x - 0.25 * y) rp rq
              let A = A with [q] <- map2 (\x y -> 0.25 * x + 0.5 * y) rp rq in
              A with [:, p] <- map2 (\x y -> x - 0.5 * y) A[:, p] A[:, q]
            else A)
    As
