-- fuzz: seed=1 n=3 g=2 k=3 h=4 w=5
-- Normalises groups of channels, then scales and shifts each channel.
entry groups_of_channels [n][g][k][h][w]
  (x: [n][g * k][h][w]f32)
  (gamma: [g * k]f32)
  (beta: [g * k]f32)
  : [n][g * k][h][w]f32 =
  let norm (grp: [k][h][w]f32) =
    let v = flatten (flatten grp)
    let mean = sum v / f32.i32 (k * h * w)
    let var = sum (map (\e -> (e - mean) ** 2) v) / f32.i32 (k * h * w) in
    map (map (map (\e -> (e - mean) * rsqrt (var + 1e-5)))) grp in
  map
    (\image ->
      let normed : [g * k][h][w]f32 = flatten (map norm (split k image)) in
      map3 (\plane a b -> map (map (\e -> e * a + b)) plane) normed gamma beta)
    x
