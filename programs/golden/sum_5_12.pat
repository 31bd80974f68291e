-- Listing 5.12 of Steuwer's thesis: listing 5.11 with its iteration written out (kernel 6). The warp
-- and the second kernel are as in sum_5_11.pat.
entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split 256
    |> mapWrg 0 (\chunk ->
      chunk
        |> reorderStride 128
        |> split 2
        |> toLocal (mapLcl 0 (reduceSeq (+) 0))
        |> reorderStride 64
        |> split 2
        |> mapLcl 0 (reduceSeq (+) 0)
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
