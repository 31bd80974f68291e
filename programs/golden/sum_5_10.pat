-- Listing 5.10 of Steuwer's thesis: as listing 5.9, but two elements are added while they are
-- loaded (kernel 4). The second kernel is as in sum_5_8.pat.
def halve [m] (xs: [m]f32) : [m / 2]f32 =
  xs |> reorderStride (m / 2) |> split 2 |> mapLcl 0 (reduceSeq (+) 0)

entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split (2 * 128)
    |> mapWrg 0 (\chunk ->
      chunk
        |> reorderStride 128
        |> split 2
        |> toLocal (mapLcl 0 (reduceSeq (+) 0))
        |> iterate 7 halve
        |> split 1
        |> toGlobal (mapLcl 0 (mapSeq id))
        |> join)
    |> join
    |> reduceSeq (+) 0
