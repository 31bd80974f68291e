-- fuzz: seed=1 n=101 m=500

-- gen: is=iota
entry scatter1 [n] [m] (d: [n]f32) (is: [m]i32) (vs: [m]f32) : [n]f32 = scatter d is vs
