import "../lib/stencil"

-- The temperatures of a chip of several layers (Rodinia's HotSpot3D) after `steps` steps of time, from those at the start and the
-- power that each cell consumes. Heat flows to the six neighbours of a cell, and to the air.
-- gen: steps=const:4 temperatures=uniform:320..350 power=uniform:0..0.002
entry hotspot3d [layers] [n] [m] (steps: i32) (temperatures: [layers][n][m]f32) (power: [layers][n][m]f32)
  : [layers][n][m]f32 =
  let thickness = 0.0005
  let capacity_si = 1.75e6
  let conductivity = 100
  let dx = 0.016 / f32.i32 n
  let dy = 0.016 / f32.i32 m
  let dz = thickness / f32.i32 layers
  let capacity = 0.5 * capacity_si * thickness * dx * dy
  let max_slope = 3e6 / (0.5 * thickness * capacity_si)
  let rate = 0.001 / max_slope / capacity
  let along = rate * (2 * conductivity * thickness * dx) / dy
  let across = rate * (2 * conductivity * thickness * dy) / dx
  let up = rate * (conductivity * dx * dy) / dz
  let next w p =
    let t = w[1, 1, 1]
    in
      t * (1 - 2 * along - 2 * across - 3 * up)
        + along * (w[1, 1, 0] + w[1, 1, 2])
        + across * (w[1, 0, 1] + w[1, 2, 1])
        + up * (w[0, 1, 1] + w[2, 1, 1] + 80)
        + rate * p
  in loop t = temperatures for step < steps do map2 (map2 (map2 next)) (windows_3d 1 t) power
