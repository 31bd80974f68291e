-- fuzz: seed=3 n=70
-- gen: steps=whole:0..6 last=whole:-2..5

-- Loops whose number of iterations the host knows from an argument; the counter is read in the step, and after the loop.
def shifted [n] (xs: [n]f32) : [n]f32 = map2 (\v w -> v * 0.5 + w * 0.25) xs (rotate 1 xs)
entry host_loop_counts [n] (steps: i32) (last: i32) (xs: [n]f32) : ([n]f32, [n]f32, [n]f32, i32, [n]f32) =
  let a = loop x = xs for s < steps do shifted x
  let b = loop x = xs for s < steps + 1 do map (+ f32.i32 s) (shifted x)
  let (c, i) = loop (x, i) = (xs, 2) while i <= last do (map (+ f32.i32 i) (shifted x), i + 1)
  let d = loop x = xs for s < 3 do
    let y = loop y = x for t < last do map (+ f32.i32 (s * t)) (shifted y)
    in shifted y
  in (a, b, c, i, d)
