entry asum [n] (xs: [n]f32) : f32 =
  xs |> split 1024
     |> mapGlb 0 (reduceSeq (\a b -> a + abs b) 0)
     |> reduceSeq (+) 0
