type vector = (f32, f32, f32)
type state = {density: f32, momentum: vector, energy: f32}

def plus (ax, ay, az) (bx, by, bz) : vector = (ax + bx, ay + by, az + bz)
def scale (s: f32) (x, y, z) : vector = (s * x, s * y, s * z)
def dot (ax, ay, az) (bx, by, bz) : f32 = ax * bx + ay * by + az * bz

def add (a: state) (b: state) : state =
  {density = a.density + b.density, momentum = plus a.momentum b.momentum, energy = a.energy + b.energy}
def times (s: f32) (a: state) : state =
  {density = s * a.density, momentum = scale s a.momentum, energy = s * a.energy}

let gamma = 1.4

-- The flow far away, of Mach 1.2 along the first axis.
let far : state =
  let speed = 1.2
  in {density = gamma, momentum = (gamma * speed, 0, 0), energy = 0.5 * gamma * speed * speed + 1 / (gamma - 1)}

def velocity (a: state) : vector = scale (1 / a.density) a.momentum
def pressure (a: state) : f32 = (gamma - 1) * (a.energy - 0.5 * dot a.momentum (velocity a))

-- The speed of the gas plus the speed of sound.
def fastest (a: state) : f32 = sqrt (dot (velocity a) (velocity a)) + sqrt (gamma * pressure a / a.density)

-- What flows through a face, whose normal has the length of its area.
def flux (a: state) (normal: vector) : state =
  let p = pressure a
  let v = dot (velocity a) normal
  in {density = dot a.momentum normal, momentum = plus (scale v a.momentum) (scale p normal), energy = v * (a.energy + p)}

-- The flux between two elements, with artificial viscosity.
def between (a: state) (b: state) (normal: vector) : state =
  let viscosity = 0.1 * sqrt (dot normal normal) * (fastest a + fastest b)
  in add (times 0.5 (add (flux a normal) (flux b normal))) (times viscosity (add b (times (-1) a)))

-- The Euler equations of a gas on an unstructured mesh of tetrahedra (Rodinia's CFD), `steps` steps of a Runge-Kutta scheme of three
-- stages from the flow far away. An element has an area and four faces; behind each is a neighbour, the wing (-1), or the flow far
-- away (-2). Normals point inwards.
-- gen: steps=const:2 areas=uniform:0.5..1 neighbours=whole:-2..n normals=uniform:-0.05..0.05
entry cfd [n] (steps: i32) (areas: [n]f32) (neighbours: [4][n]i32) (normals: [4][n]vector) : [n]state =
  let fluxes (states: [n]state) =
    map3
      (\a faces ns ->
        let through j normal =
          if j >= 0 then between a states[j] normal
          else if j == -1 then {density = 0, momentum = scale (pressure a) normal, energy = 0}
          else times 0.5 (add (flux far normal) (flux a normal))
        in map2 through faces ns |> reduce add {density = 0, momentum = (0, 0, 0), energy = 0})
      states
      (transpose neighbours)
      (transpose normals)
  in
    loop states = replicate n far for step < steps do
      let factors = map2 (\a area -> 0.5 / (sqrt area * fastest a)) states areas
      in
        loop now = states for stage < 3 do
          map3 (\a f flow -> add a (times (f / f32.i32 (4 - stage)) flow)) states factors (fluxes now)
