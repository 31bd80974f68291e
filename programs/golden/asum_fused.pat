-- Figure 5.9 of Steuwer's thesis, figure 10 of the ICFP 2015 paper: absolute values are taken inside the
-- sequential sums of chunks of `k`. There the outer map and the outer `reduce` are not lowered
-- yet: here the map is over global work-items, and one work-item adds the partial sums.
entry asum [m][k] (xs: [m * k]f32) : f32 =
  xs |> split k |> mapGlb 0 (reduceSeq (\a b -> a + abs b) 0) |> reduceSeq (+) 0
