-- The number of steps until `z * z + c` leaves the circle of radius 2, at most `limit`.
def escape (limit: i32) (cx: f32) (cy: f32) : i32 =
  let (_, _, steps) =
    loop (x, y, i) = (cx, cy, 0) while i < limit && x * x + y * y < 4 do
      (x * x - y * y + cx, 2 * x * y + cy, i + 1)
  in steps

-- The Mandelbrot set (Accelerate's and SkelCL's benchmark) on `height` by `width` points of a rectangle of the complex plane.
-- gen: limit=const:255 xmin=const:-2.23 ymin=const:-1.15 xmax=const:0.83 ymax=const:1.15
entry mandelbrot [width] [height]
  (width: i32) (height: i32) (limit: i32) (xmin: f32) (ymin: f32) (xmax: f32) (ymax: f32) : [height][width]i32 =
  tabulate_2d height width (\i j ->
    escape
      limit
      (xmin + f32.i32 j * (xmax - xmin) / f32.i32 width)
      (ymin + f32.i32 i * (ymax - ymin) / f32.i32 height))
