-- Listing 5.8 of Steuwer's thesis: a sum in work-groups of 128, neighbours added in 7 steps (his
-- hand-written kernels 1 and 2). Here a reduction gives its element and not an array of length one, so
-- `join . mapLcl 0 (reduceSeq ...)` is `mapLcl 0 (reduceSeq ...)`. The thesis leaves the outer
-- `reduce` to a second kernel that it does not give: one work-item adds the partial sums.
entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split 128
    |> mapWrg 0 (\chunk ->
      chunk
        |> split 1
        |> toLocal (mapLcl 0 (mapSeq id))
        |> join
        |> iterate 7 (split 2 >-> mapLcl 0 (reduceSeq (+) 0))
        |> split 1
        |> toGlobal (mapLcl 0 (mapSeq id))
        |> join)
    |> join
    |> reduceSeq (+) 0
