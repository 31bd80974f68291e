entry sum [g][k] (xs: [g*k*128]f32) : f32 =
  xs |> split (k*128)
     |> mapWrg 0 (reorderStride 128 >-> split k >-> toLocal (mapLcl 0 (reduceSeq (+) 0))
          >-> reorderStride 64 >-> split 2 >-> mapLcl 0 (reduceSeq (+) 0)
          >-> split 1 >-> toGlobal (mapLcl 0 (mapSeq id)) >-> join)
     |> join
     |> reduceSeq (+) 0
