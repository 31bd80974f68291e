-- fuzz: seed=1 n=5 k=3
-- A matrix of few bits times a vector: two sums for each group, with a scale and a start, are one sum.
entry few [n][k] (w: [n][k][8]u8) (s: [n][k]f32) (z: [n][k]u8) (x: [k][16]f32) : [n]f32 =
  map3
    (\wr sr zr ->
      sum
        (map4
          (\wg sc zp xg ->
            let zf = f32.u8 zp
            let lo = sum (map2 (\b j -> (f32.u8 (b & 15) - zf) * xg[2 * j]) wg (iota 8))
            let hi = sum (map2 (\b j -> (f32.u8 (b >> 4) - zf) * xg[2 * j + 1]) wg (iota 8)) in
            sc * (lo + hi))
          wr
          sr
          zr
          x))
    w
    s
    z
