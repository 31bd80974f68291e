-- 0 at even numbers, 1 at odd ones, and straight between them.
def wrapped (x: f32) : f32 =
  let n = i32.f32 x
  let rest = x - f32.i32 n
  in if n & 1 == 1 then 1 - rest else rest

-- A quasicrystal (Accelerate's benchmark): waves from `degree` directions, added at `size` by `size` points, as colours 0xRRGGBB from
-- orange to white.
-- gen: scale=const:30 degree=const:5 time=const:1
entry crystal [size] (size: i32) (scale: f32) (degree: i32) (time: f32) : [size][size]i32 =
  let angle = f32.pi / (1 + 0.005 * time ** 1.5)
  let place i = (2 * f32.i32 i / f32.i32 size - 1) * scale
  let wave x y k =
    let a = angle * f32.i32 (k + 1)
    in 0.5 * (1 + cos (x * cos a + y * sin a))
  let channel v = clamp (i32.f32 (255 * v)) 0 255
  in
    tabulate_2d size size (\i j ->
      let sum = loop sum = 0 for k < degree do sum + wave (place j) (place i) k
      let v = wrapped sum
      in channel 1 << 16 | channel (0.4 + 0.6 * v) << 8 | channel v)
