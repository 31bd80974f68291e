type vector = (f32, f32, f32)

def add (ax, ay, az) (bx, by, bz) : vector = (ax + bx, ay + by, az + bz)
def scale (s: f32) (x, y, z) : vector = (s * x, s * y, s * z)

-- What the gravity of a body at q with mass m does to one at p.
def pull (eps: f32) (p: vector) (q: vector, m: f32) : vector =
  let (dx, dy, dz) = add q (scale (-1) p)
  let r = 1 / sqrt (dx * dx + dy * dy + dz * dz + eps)
  in scale (m * r * r * r) (dx, dy, dz)

-- Bodies that attract each other (Accelerate's N-body): their positions and velocities after `steps` steps of time `dt`. `eps` softens
-- the force at small distances.
-- gen: steps=const:1 dt=const:0.1 eps=const:50 positions=uniform:-100..100 masses=uniform:1..50 velocities=uniform:-1..1
entry nbody [n] (steps: i32) (dt: f32) (eps: f32) (positions: [n]vector) (masses: [n]f32) (velocities: [n]vector)
  : ([n]vector, [n]vector) =
  loop (ps, vs) = (positions, velocities) for step < steps do
    let forces = map (\p -> reduce add (0, 0, 0) (map (pull eps p) (zip ps masses))) ps
    let vs = map2 (\v a -> add v (scale dt a)) vs forces
    in (map2 (\p v -> add p (scale dt v)) ps vs, vs)
