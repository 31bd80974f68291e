-- fuzz: seed=47760446359496
-- On PoCL, `abs` of a constant that is the lowest number gave another one.
entry random = (abs (replicate 3 i32.lowest)[0], abs i8.lowest, abs i64.lowest)
