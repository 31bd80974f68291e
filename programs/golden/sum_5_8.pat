entry sum [n] (xs: [n]f32) : f32 =
  xs |> split 128
     |> mapWrg 0 (toLocal (mapLcl 0 id)
          >-> iterate 7 (split 2 >-> mapLcl 0 (reduceSeq (+) 0))
          >-> toGlobal (mapLcl 0 id))
     |> join
     |> reduceSeq (+) 0
