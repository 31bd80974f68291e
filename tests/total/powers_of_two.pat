-- fuzz: seed=1 n=64 s=7
-- Quotients and remainders by powers of two whose exponents are counters, also of negative numbers.
entry powers [n][s] (xs: [n]i32) (us: [n]u32) : [s][n](i32, i32, i32, u32, u32) =
  tabulate_2d s n (\k i ->
    let (d, u) = (1 << k, 1u32 << u32.i32 k) in
    (i / d + i % d,
      xs[i] / d + xs[i] % d,
      i / (4 * d) + (i + 3) % (d * 2),
      us[i] / u,
      us[i] % (u * 8)))
