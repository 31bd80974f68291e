-- fuzz: seed=1 n=2003
-- Number, mean and squared deviations of each bin, merged: three components that an operator combines with each other.
-- gen: is=whole:-2..40 xs=whole:0..8
entry moments [n] (is: [n]i32) (xs: [n]f32) : [37](f32, f32, f32) =
  let merge (a: (f32, f32, f32)) (b: (f32, f32, f32)) : (f32, f32, f32) =
    let n = a.0 + b.0
    let d = b.1 - a.1
    let r = if n > 0 then b.0 / n else 0
    in (n, a.1 + d * r, a.2 + b.2 + d * d * a.0 * r)
  in histogram merge (0, 0, 0) 37 is (map (\x -> (1, x, 0)) xs)
