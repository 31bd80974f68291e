-- The sum of absolute values in which the fused one is found (tests/engine/found.rs).
entry asum (xs: [33554432]f32) : f32 = reduce (+) 0 (map abs xs)

-- expect stats rules=partials,fusion
-- | stop saturated
-- expect found rules=partials,fusion
-- | reduceSeq (+) 0.0 . mapGlb 0 (reduceSeq (\(a, b) -> a + abs b) 0.0) . split 32768 . xs
