-- fuzz: seed=1 n=40 m=70
-- One step of connected components: what both halves of a histogram's input share is computed once.
entry histogram_of_shared [n] [m] (steps: i32) (src: [m]i32) (dst: [m]i32) : [n]i32 =
  let at i = abs (i % i32.i64 n)
  let (src, dst) = (map at src, map at dst)
  in loop lab = iota n for s < steps % 4 do
       let ls = gather lab src
       let ld = gather lab dst
       let low = map2 min ls ld
       in reduce_by_index lab min i32.highest (concat ls ld) (concat low low)
