-- Listing 5.9 of Steuwer's thesis: as listing 5.8, but each step adds elements half the current length
-- apart, so that neighbouring work-items read neighbouring elements (kernel 3). `size xs` of the
-- thesis is the size variable `m` of the definition. The second kernel is as in sum_5_8.pat.
def halve [m] (xs: [m]f32) : [m / 2]f32 =
  xs |> reorderStride (m / 2) |> split 2 |> mapLcl 0 (reduceSeq (+) 0)

entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split 128
    |> mapWrg 0 (\chunk ->
      chunk
        |> split 1
        |> toLocal (mapLcl 0 (mapSeq id))
        |> join
        |> iterate 7 halve
        |> split 1
        |> toGlobal (mapLcl 0 (mapSeq id))
        |> join)
    |> join
    |> reduceSeq (+) 0
