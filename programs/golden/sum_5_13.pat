-- Listing 5.13 of Steuwer's thesis: as listing 5.12, but each work-item adds many elements while it
-- loads them (kernel 7). The thesis writes `blockSize` for what a work-group adds: here it is `128*k`,
-- of which there are `g`. The warp and the second kernel are as in sum_5_11.pat.
entry sum [g][k] (xs: [g * (128 * k)]f32) : f32 =
  xs
    |> split (128 * k)
    |> mapWrg 0 (\chunk ->
      chunk
        |> reorderStride 128
        |> split k
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
