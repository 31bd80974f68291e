-- The sum in which the thesis' low-level reductions and the results of its search are found (tests/engine/found.rs).
-- Its length is a number, because the sets `thesis` and `partials` have numbers for tiles.
entry sum (xs: [33554432]f32) : f32 = reduce (+) 0 xs

-- expect stats rules=thesis,warp
-- | stop saturated
-- expect stats rules=partials,to-global
-- | stop saturated
