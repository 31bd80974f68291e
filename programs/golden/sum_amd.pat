entry sum [n] (xs: [n]f32) : f32 =
  xs |> split (128*4096)
     |> mapWrg 0 (asVector 2 >-> reorderStride 128 >-> split 2048
          >-> mapLcl 0 (reduceSeq (vectorize 2 (+)) 0 >-> vectorize 2 id)
          >-> asScalar)
     |> join
     |> reduceSeq (+) 0
