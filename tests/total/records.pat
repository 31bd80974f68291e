-- fuzz: seed=1 n=19

type vec = {x: f32, y: f32}
type body = {pos: vec, mass: f32, kind: i32}
let tau = 6.2831855f32

def scale (s: f32) (v: vec) : vec = {x = s * v.x, y = s * v.y}
def add (u: vec) ({x, y}: vec) : vec = {y = y + u.y, x = x + u.x}

entry centre [n] (bodies: [n]body) (shift: vec) : ([n]body, vec) =
  let total = reduce_comm add {x = 0, y = 0} (map (\b : vec -> scale b.mass b.pos) bodies)
  let moved = map (\b -> if b.kind % 2 == 0 then b with pos.x = b.pos.x + shift.x * tau else b) bodies
  in (moved, total with x = total.x / tau)
