-- fuzz: seed=173212327837020
-- Did not build: a register that is borrowed by one that is borrowed itself was not declared.
entry random = (reduceSeq (\x2 x1 -> (4)) 1i32 (replicate (2) 1i32))
