-- fuzz: seed=1 n=100
-- gen: xs=uniform:0..65536
-- A stable sort by digits of one bit: the place of each element is counted by scans.
entry sort [n] (xs: [n]u32) : [n]u32 =
  loop ys = xs for i < 16u32 do
    let ones = map (\y -> i32.u32 (y >> i & 1)) ys
    let zeros = map (\b -> b ^ 1) ones
    let before = scan (+) 0 zeros
    let after = scan (+) 0 ones
    let places = map4 (\b z o last -> if b == 0 then z - 1 else last + o - 1) ones before after (replicate n (before[n - 1]))
    in scatter ys places ys
