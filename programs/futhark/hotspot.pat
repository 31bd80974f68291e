import "../lib/stencil"

-- The temperatures of a chip (Rodinia's HotSpot) after `steps` steps of time, from those at the start and the power that each cell
-- consumes. Heat flows to the four neighbours of a cell, and to the air.
-- gen: steps=const:4 temperatures=uniform:320..350 power=uniform:0..0.002
entry hotspot [n] [m] (steps: i32) (temperatures: [n][m]f32) (power: [n][m]f32) : [n][m]f32 =
  let thickness = 0.0005
  let capacity_si = 1.75e6
  let conductivity = 100
  let height = 0.016 / f32.i32 n
  let width = 0.016 / f32.i32 m
  let capacity = 0.5 * capacity_si * thickness * width * height
  let rx = width / (2 * conductivity * thickness * height)
  let ry = height / (2 * conductivity * thickness * width)
  let rz = thickness / (conductivity * height * width)
  let max_slope = 3e6 / (0.5 * thickness * capacity_si)
  let rate = 0.001 / max_slope / capacity
  let next w p =
    let t = w[1, 1]
    in
      t
        + rate
          * (p + (w[0, 1] + w[2, 1] - 2 * t) / ry + (w[1, 0] + w[1, 2] - 2 * t) / rx + (80 - t) / rz)
  in loop t = temperatures for step < steps do map2_2d next (windows_2d 1 t) power
