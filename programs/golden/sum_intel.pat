-- What the search of the thesis found for a CPU of Intel (figure 6.3): one work-item for each group adds
-- 8192 vectors of four in order. As printed, `split 32768` splits chunks of that length again, in which there
-- are only 8192 vectors; this is the form with types. The outer `reduce` is a second
-- kernel of one work-item.
entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split 32768
    |> mapWrg
      0
      (asVector 4
        >-> split 8192
        >-> mapLcl 0 (reduceSeq (vectorize 4 (+)) 0 >-> vectorize 4 id)
        >-> asScalar)
    |> join
    |> reduceSeq (+) 0
