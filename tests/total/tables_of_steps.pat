-- fuzz: seed=1 b=70 h=16
-- A Fourier transform by stages: the factors of all stages are a table, and the divisors are powers of two.
entry fft [b][h] (x: [b][2 * h](f32, f32)) : [b][2 * h](f32, f32) =
  map
    (\row ->
      let (out, _) =
        loop (v, m) = (row, 1) while m < 2 * h do
          let next =
            generate (2 * h) (\o ->
              let k = o % m
              let half = o / m % 2
              let q = o / (2 * m) * m + k
              let (ar, ai) = v[q]
              let (br, bi) = v[q + h]
              let angle = -f32.pi * f32.i32 k / f32.i32 m
              let (c, s) = (cos angle, sin angle)
              let (tr, ti) = (c * br - s * bi, c * bi + s * br) in
              if half == 0
              then (ar + tr, ai + ti)
              else (ar - tr, ai - ti)) in
          (next, 2 * m) in
      out)
    x
