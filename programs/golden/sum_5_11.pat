def halve [m] (xs: [m]f32) : [m/2]f32 =
  xs |> reorderStride (m/2) |> split 2 |> mapLcl 0 (reduceSeq (+) 0)
def add k = reorderStride k >-> split 2 >-> mapLane (reduceSeq (+) 0)
entry sum [n] (xs: [n]f32) : f32 =
  xs |> split 256
     |> mapWrg 0 (reorderStride 128 >-> split 2 >-> toLocal (mapLcl 0 (reduceSeq (+) 0))
          >-> iterate 1 halve
          >-> split 64
          >-> mapWarp (reorderStride 32 >-> split 2 >-> mapLane (reduceSeq (+) 0)
              >-> reorderStride 16 >-> split 2 >-> mapLane (reduceSeq (+) 0)
              >-> reorderStride 8 >-> split 2 >-> mapLane (reduceSeq (+) 0)
              >-> reorderStride 4 >-> split 2 >-> mapLane (reduceSeq (+) 0)
              >-> reorderStride 2 >-> split 2 >-> mapLane (reduceSeq (+) 0)
              >-> reorderStride 1 >-> split 2 >-> mapLane (reduceSeq (+) 0))
          >-> join
          >-> split 1 >-> toGlobal (mapLcl 0 (mapSeq id)) >-> join)
     |> join
     |> reduceSeq (+) 0
