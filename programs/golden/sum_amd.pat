-- What the search of the thesis found for a GPU of AMD (figure 6.3): as for Nvidia, in vectors of two.
-- As printed, vectors are made and taken apart under one dimension too many, and the initial value is a
-- scalar; this is the form with types. `vectorize 2 id` copies what the sum gave, as the search
-- left it. The outer `reduce` is a second kernel of one work-item.
entry sum [n] (xs: [n]f32) : f32 =
  xs
    |> split (128 * 4096)
    |> mapWrg
      0
      (asVector 2
        >-> reorderStride 128
        >-> split 2048
        >-> mapLcl 0 (reduceSeq (vectorize 2 (+)) 0 >-> vectorize 2 id)
        >-> asScalar)
    |> join
    |> reduceSeq (+) 0
