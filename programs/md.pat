-- The force of one particle on another after Lennard and Jones, nothing beyond the cut-off.
def force (cut: f32) (lj1: f32) (lj2: f32) (px, py, pz) (qx, qy, qz) =
  let dx = px - qx
  let dy = py - qy
  let dz = pz - qz
  let r2 = dx * dx + dy * dy + dz * dz
  let i2 = 1 / r2
  let i6 = i2 * i2 * i2
  let g = i2 * i6 * (lj1 * i6 - lj2) in
  if r2 < cut
  then (dx * g, dy * g, dz * g)
  else (0, 0, 0)

def add (ax, ay, az) (bx, by, bz) = (ax + bx, ay + by, az + bz)

-- Molecular dynamics (SHOC): the forces on particles by those in their lists of neighbours. Column i of nb
-- is the list of particle i.
-- gen: pos=uniform:0..8 nb=neighbours:n cut=const:16 lj1=const:1.5 lj2=const:2
entry md [n][k]
  (pos: [n](f32, f32, f32))
  (nb: [k][n]i32)
  (cut: f32)
  (lj1: f32)
  (lj2: f32)
  : [n](f32, f32, f32) =
  map2
    (\p js -> gather pos js |> map (force cut lj1 lj2 p) |> reduce add (0, 0, 0))
    pos
    (transpose nb)
