-- fuzz: seed=135472923809123
-- Did not build for an NVIDIA GPU: `max` of an unsigned integer and a sign, `clamp` of a choice between narrow integers.
entry random = (max 1u32 (sign 1u32), clamp (if true then 0i8 else 1i8) 1i8 1i8)
