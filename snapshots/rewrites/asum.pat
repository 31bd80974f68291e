-- What rewriting makes of a fused reduction. `patsat snapshot snapshots/rewrites` checks it.
entry asum [n] (xs: [n]f32) : f32 =
  xs |> map abs |> reduce (+) 0

-- Everything is in the graph.
-- expect stats size n=16384
-- | stop saturated

-- The fused loop over chunks (ICFP 2015, figure 10), and in work-items.
-- expect found size n=16384
-- | reduce (+) 0.0 . map (reduceSeq (\(a, b) -> a + abs b) 0.0) . split 128 . xs
-- expect found size n=16384
-- | reduceSeq (+) 0.0 . mapGlb 0 (reduceSeq (\(a, b) -> a + abs b) 0.0) . split 128 . xs

-- Partial results in local memory, each work-item striding through its group's chunk.
-- expect found size n=16384
-- | reduceSeq (+) 0.0
-- | . mapWrg 0 (
-- |   reduceSeq (+) 0.0
-- |   . toLocal (mapLcl 0 (reduceSeq (\(a, b) -> a + abs b) 0.0))
-- |   . transpose . split 32)
-- | . split 2048 . xs

-- In vectors.
-- expect found size n=16384
-- | reduceSeq (+) 0.0 . asScalar . wrap
-- | . reduceSeq (vectorize 4 (\(a, b) -> a + abs b)) (splat 4 . 0.0) . asVector 4 . xs

-- Where the chunks do not divide the length, what pads it is masked.
-- expect found size n=1000
-- | reduceSeq (+) 0.0
-- | . mapGlb 0 (reduceSeq (\(a, (there, x)) -> a + (if there then abs x else 0.0)) 0.0)
-- | . split 128 . mask 1024 . xs
