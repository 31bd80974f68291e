-- What the search of the thesis found for a GPU of Nvidia (figure 6.3): each of 128 work-items adds
-- 2048 elements, 128 apart. As printed, `reorder-stride 2048` stands on an array of 128 chunks, which it
-- does not divide; this is the form with types that reads memory in the same order. The outer `reduce` is
-- a second kernel of one work-item.
entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split (128 * 2048)
    |> mapWrg 0 (reorderStride 128 >-> split 2048 >-> toGlobal (mapLcl 0 (reduceSeq (+) 0)))
    |> join
    |> reduceSeq (+) 0
