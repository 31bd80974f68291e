entry scal [n] (alpha: f32) (xs: [n]f32) : [n]f32 =
  xs |> split 1024
     |> mapWrg 0 (asVector 4 >-> mapLcl 0 (vectorize 4 (* alpha)) >-> asScalar)
     |> join
