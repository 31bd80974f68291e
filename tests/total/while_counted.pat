-- fuzz: seed=4 s=5 n=23

-- Loops whose conditions depend on counters alone: doubling, halving, steps of a constant, two counters, no step, one step,
-- a counter that is neither linear nor doubles, and a counter that is read after the loop.
entry counted [s] [n] (xss: [s][n]f32) =
  let at (xs: [n]f32) (i: i32) = if i < 0 || i >= n then 0.0 else xs[i]
  let shifted (xs: [n]f32) (h: i32) = generate n (\i -> 0.5 * (xs[i] + at xs (i - h) - at xs (i + h)))
  let doubled = map (\xs -> (loop (xs, h) = (xs, 1i32) while h < n do (shifted xs h, 2 * h)).0) xss
  let halved = map (\xs -> (loop (h, xs) = (n / 2i32, xs) while h > 0 do (h / 2, shifted xs h)).1) xss
  let counted = map (\xs -> loop (i, xs) = (2i32, xs) while i <= 11 do (i + 3, shifted xs i)) xss
  let both = map (\xs -> (loop (xs, i, k) = (xs, 0u8, 9i64) while i < 7 && k != 3 do
    let next = i + 2
    in (shifted xs (i32.u8 i + i32.i64 k), next, k - 1)).0) xss
  let none = map (\xs -> (loop (xs, i) = (xs, 5i32) while i < 3 do (shifted xs i, i + 1)).0) xss
  let one = map (\xs -> loop (xs, i) = (xs, 5i32) while i != 6 do (shifted xs i, i + 1)) xss
  let odd = map (\xs -> (loop (xs, i) = (xs, 1i32) while i < 40 do (shifted xs i, 3 * i + 1)).0) xss
  let scalars = map (\xs -> loop (x, i) = (xs[0], 0i32) while i < 6 do (0.5 * x + f32.i32 i, i + 1)) xss
  in (doubled, halved, counted, both, none, one, odd, scalars)
