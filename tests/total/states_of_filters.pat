-- fuzz: seed=1 t=40 c=30 s=17
-- fuzz: seed=2 t=1 c=5 s=1

-- A bank of recursive filters for each channel, whose outputs are added in each step.
-- gen: u=uniform:-1..1 a=uniform:-0.9..0.9 b=uniform:-1..1 w=uniform:-1..1
entry filters [t] [c] [s] (u: [c][t]f32) (a: [c][s]f32) (b: [t][s]f32) (w: [t][s]f32) : [c][t]f32 =
  map2 (\uc ac ->
    let (_, ys) =
      loop (h, ys) = (replicate s 0, replicate t 0) for i < t do
        let x = uc[i]
        let h = map3 (\v k m -> k * v + m * x) h ac b[i]
        in (h, ys with [i] <- sum (map2 (*) h w[i]) + x)
    in ys) u a
