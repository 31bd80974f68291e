-- fuzz: seed=1 n=1009

-- As many bins as values: no work-item has bins of its own.
-- gen: is=whole:0..n
entry manybins [n] (is: [n]i32) (vs: [n]f32) : [n]f32 = histogram (+) 0 n is vs
