-- fuzz: seed=1 n=203
-- Gray codes, a reversal of bits, and Marsaglia's xorshift generator.
def reversed (x: u32) : u32 =
  let x = (x & 0x55555555) << 1 | (x >> 1) & 0x55555555
  let x = (x & 0x33333333) << 2 | (x >> 2) & 0x33333333
  let x = (x & 0x0f0f0f0f) << 4 | (x >> 4) & 0x0f0f0f0f
  let x = (x & 0x00ff00ff) << 8 | (x >> 8) & 0x00ff00ff
  in x << 16 | x >> 16

def xorshift (x: u32) : u32 =
  let x = x ^ x << 13
  let x = x ^ x >> 17
  in x ^ x << 5

entry bits [n] (xs: [n]u32) : ([n]u32, [n]u32, [n]u32, u32, u32, u32) =
  let random = map (\x -> loop y = x | 1 for i < 5 do xorshift y) xs
  in (map (\x -> x ^ x >> 1) xs, map reversed xs, random, reduce (^) 0 random, reduce (&) (~0) xs, reduce (|) 0 xs)
