-- fuzz: seed=4 n=71
-- gen: steps=whole:0..9

-- Parts of the state that change places: the last two values of a wave, three values in a ring, and an exchange beside them.
def around [n] (xs: [n]f32) : [n]f32 = map (\w -> 0.5 * (w[0] + w[2])) (slide 3 1 (pad 1 1 0 xs))
entry loop_rotates_state [n] (steps: i32) (x: [n]f32) (y: [n]f32) (z: [n]f32)
  : (([n]f32, [n]f32), ([n]f32, [n]f32, [n]f32), ([n]f32, [n]f32, [n]f32), ([n]f32, [n]f32)) =
  (loop (a, b) = (x, y) for s < 100 do (b, map2 (-) (around b) a),
   loop (a, b, c) = (x, y, z) for s < steps do (b, c, map2 (+) (around a) c),
   loop (a, b, c) = (x, y, z) for s < 70 do (b, a, map2 (-) (around c) (around b)),
   loop (a, b) = (x, y) for s < 71 do (map (* 0.9) b, map2 (+) (around a) b))
