-- fuzz: seed=1 n=53

def blur xs = map (\w -> (w[0] + 2 * w[1] + w[2]) / 4) (slide 3 1 (pad 1 1 clamp xs))
def centred xs = let m = reduce (+) 0 xs in map (\x -> x - m) (blur xs)
entry short_loops [n] (xs: [n]f32) : ([n]f32, [n]f32, [n]f32, [n]f32, [n]f32) =
  (loop (a = xs) for s < 0 do centred a,
   loop (a = xs) for s < 1 do centred a,
   loop (a = xs) for s < 2 do map (\x -> x + f32.i32 s) (centred a),
   iterate 3 centred xs,
   loop (a = xs) for s < 4 do map (\x -> x + f32.i32 s) (blur a))
