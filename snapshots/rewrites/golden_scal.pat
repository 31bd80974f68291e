-- The scaling in which the vectorised one is found (tests/engine/found.rs).
entry scal (alpha: f32) (xs: [33554432]f32) : [33554432]f32 = map (* alpha) xs

-- expect stats rules=partials
-- | stop saturated
-- expect found rules=partials
-- | join . mapWrg 0 (asScalar . mapLcl 0 (vectorize 4 (\x -> x * alpha)) . asVector 4) . split 1024 . xs
