-- fuzz: seed=1 m=4 o=37 g=5

-- Weights of one bit, which is a sign, and a mask for the weights.
entry linear [m][o][g] (x: [m][32 * g]f32) (w: [o][g]u32) (mask: [o][32 * g]bool) : [m][o]f32 =
  let W =
    map2
      (\row ms ->
        map2
          (\b c -> if c then b else 0.0)
          (flatten
            (map
              (\word -> map (\t -> if (word >> u32.i32 t) & 1 == 1 then 1.0 else -1.0) (iota 32))
              row))
          ms)
      w
      mask in
  map (\xr -> map (\wr -> sum (map2 (*) xr wr)) W) x
