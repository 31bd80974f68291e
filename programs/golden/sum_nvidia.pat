entry sum [n] (xs: [n]f32) : f32 =
  xs |> split (128*2048)
     |> mapWrg 0 (reorderStride 128 >-> split 2048 >-> toGlobal (mapLcl 0 (reduceSeq (+) 0)))
     |> join
     |> reduceSeq (+) 0
