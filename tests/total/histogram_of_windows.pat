-- fuzz: seed=1 n=1009 m=61
-- The bin of a window is a loop over a few elements, which are computed from a text.
-- gen: text=letters:abcdXYZ
def lower (c: u8) : u8 = if c >= 65 && c <= 90 then c + 32 else c

entry trigrams [n][m] (text: [n]u8) : ([m]i32, [m]i32) =
  let hash w = loop h = 2166136261u32 for c in w do (h ^ u32.u8 c) * 16777619
  let slots = map (\w -> i32.u32 (hash w % u32.i64 m)) (slide 3 1 (map lower text))
  let pairs = map (\w -> (i32.u8 w[0] * 7 + i32.u8 w[1]) % 61) (slide 2 1 text) in
  (histogram (+) 0 m slots (map (\_ -> 1) slots), histogram (+) 0 m pairs (map (\_ -> 1) pairs))
