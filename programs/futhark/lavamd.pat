type particle = (f32, f32, f32, f32)

def add (a, b, c, d) (e, f, g, h) : particle = (a + e, b + f, c + g, d + h)

-- The potential, and the force, that a charge at q causes at p. The first component of a particle is the square of its distance
-- from the origin.
def interaction (alpha: f32) (pv, px, py, pz) (qv, qx, qy, qz) (charge: f32) : particle =
  let u = charge * exp (-2 * alpha * alpha * (pv + qv - (px * qx + py * qy + pz * qz)))
  in (u, 2 * u * (px - qx), 2 * u * (py - qy), 2 * u * (pz - qz))

-- The potentials and forces of particles in boxes (Rodinia's LavaMD) by the particles of their own box and of the boxes next to it: the first
-- `counts` of its `neighbours`.
-- gen: alpha=const:0.5 counts=whole:7..27 neighbours=neighbours:boxes particles=uniform:0.1..1 charges=uniform:0.1..1
entry lavamd [boxes] [n]
  (alpha: f32)
  (counts: [boxes]i32)
  (neighbours: [boxes][26]i32)
  (particles: [boxes][n]particle)
  (charges: [boxes][n]f32)
  : [boxes][n]particle =
  map4
    (\box count others own ->
      map
        (\p ->
          loop sum = (0, 0, 0, 0) for i < count + 1 do
            let b = if i == 0 then box else others[i - 1]
            in map2 (interaction alpha p) particles[b] charges[b] |> reduce add (0, 0, 0, 0) |> add sum)
        own)
    (iota boxes)
    counts
    neighbours
    particles
