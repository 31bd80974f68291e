-- What a body at q with mass m, the fourth component, does to one at p.
def pull (eps: f32) (px, py, pz, _) (qx, qy, qz, m) =
  let dx = qx - px
  let dy = qy - py
  let dz = qz - pz
  let r = rsqrt (dx * dx + dy * dy + dz * dz + eps)
  let w = m * r * r * r in
  (dx * w, dy * w, dz * w)

def add (ax, ay, az) (bx, by, bz) = (ax + bx, ay + by, az + bz)

-- The accelerations of bodies by the gravity of all, softened by eps. A body is its place and its mass.
-- gen: bodies=uniform:-1..1 bodies.3=uniform:0.1..1 eps=const:0.01
entry nbody [n] (bodies: [n](f32, f32, f32, f32)) (eps: f32) : [n](f32, f32, f32) =
  map (\p -> bodies |> map (pull eps p) |> reduce add (0, 0, 0)) bodies
