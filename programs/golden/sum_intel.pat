entry sum [n] (xs: [n]f32) : f32 =
  xs |> split 32768
     |> mapWrg 0 (asVector 4 >-> split 8192
          >-> mapLcl 0 (reduceSeq (vectorize 4 (+)) 0 >-> vectorize 4 id)
          >-> asScalar)
     |> join
     |> reduceSeq (+) 0
