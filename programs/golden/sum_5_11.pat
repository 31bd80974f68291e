-- Listing 5.11 of Steuwer's thesis: as listing 5.10, but the last 64 elements are added by one warp
-- (kernel 5). The thesis relies on the lanes of a warp running in lock-step, which no device
-- promises any more: here they meet at a barrier after each step. The second kernel is as in
-- sum_5_8.pat.
def halve [m] (xs: [m]f32) : [m / 2]f32 =
  xs |> reorderStride (m / 2) |> split 2 |> mapLcl 0 (reduceSeq (+) 0)

entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split 256
    |> mapWrg 0 (\chunk ->
      chunk
        |> reorderStride 128
        |> split 2
        |> toLocal (mapLcl 0 (reduceSeq (+) 0))
        |> iterate 1 halve
        |> split 64
        |> mapWarp (\part ->
          part
            |> reorderStride 32
            |> split 2
            |> mapLane (reduceSeq (+) 0)
            |> reorderStride 16
            |> split 2
            |> mapLane (reduceSeq (+) 0)
            |> reorderStride 8
            |> split 2
            |> mapLane (reduceSeq (+) 0)
            |> reorderStride 4
            |> split 2
            |> mapLane (reduceSeq (+) 0)
            |> reorderStride 2
            |> split 2
            |> mapLane (reduceSeq (+) 0)
            |> reorderStride 1
            |> split 2
            |> mapLane (reduceSeq (+) 0))
        |> join
        |> split 1
        |> toGlobal (mapLcl 0 (mapSeq id))
        |> join)
    |> join
    |> reduceSeq (+) 0
