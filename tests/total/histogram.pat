-- fuzz: seed=1 n=101

-- gen: is=uniform:0..16
entry hist1 [n] (is: [n]i32) (vs: [n]f32) : [16]f32 = histogram (+) 0 16 is vs
