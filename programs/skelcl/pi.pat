-- A random number from a number (O'Neill's PCG).
def random (i: u32) : u32 =
  let state = i * 747796405 + 2891336453
  let word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737
  in (word >> 22) ^ word

-- Pi by the Monte-Carlo method: four times the share of `n` random points of a square that are in the quarter of a circle.
-- gen: seed=const:1
entry pi [n] (n: i32) (seed: u32) : f32 =
  let coordinate k = f32.u32 (random k >> 8) / 16777216
  let inside i =
    let x = coordinate (random seed + 2 * i)
    let y = coordinate (random seed + 2 * i + 1)
    in x * x + y * y < 1
  in 4 * f32.i32 (count inside (iota n)) / f32.i32 n
