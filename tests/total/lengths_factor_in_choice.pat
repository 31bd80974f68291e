-- fuzz: seed=1 n=0

entry lengths_factor_in_choice [n] (xs: [n]i32) : [n + 4][n + 4]i32 =
  if reduce (+) 0 xs >= 0 then split (n + 4) (replicate (n * n + 8 * n + 16) 1)
  else replicate (n + 4) (replicate (n + 4) 2)
