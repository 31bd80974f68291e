-- The second derivative at each point of a grid: the coefficients of the point before, the point, and the point behind it.
-- At both ends it is 0.
def second [n] (xs: [n]f32) : [n](f32, f32, f32) =
  generate n (\i ->
    if i == 0 || i == n - 1 then (0, 0, 0)
    else
      let l = xs[i] - xs[i - 1]
      let u = xs[i + 1] - xs[i]
      in (2 / l / (l + u), -2 * (1 / l + 1 / u) / (l + u), 2 / u / (l + u)))

-- Half of the variance times the second derivative of a row.
def explicit [n] (d: [n](f32, f32, f32)) (variance: [n]f32) (row: [n]f32) : [n]f32 =
  map3 (\(l, m, u) v w -> 0.5 * v * (l * w[0] + m * w[1] + u * w[2])) d variance (slide 3 1 (pad 1 1 0 row))

-- Solves `inv * x - explicit d variance x / 2 = row` for x: a tridiagonal system, by the algorithm of Thomas.
def implicit [n] (d: [n](f32, f32, f32)) (variance: [n]f32) (inv: f32) (row: [n]f32) : [n]f32 =
  let (cs, ys) =
    loop (cs, ys) = (replicate n 0.0, replicate n 0.0) for i < n do
      let (l, m, u) = d[i]
      let h = -0.25 * variance[i]
      let c = if i > 0 then cs[i - 1] else 0
      let y = if i > 0 then ys[i - 1] else 0
      let w = 1 / (inv + h * m - h * l * c)
      in (cs with [i] <- h * u * w, ys with [i] <- (row[i] - h * l * y) * w)
  in
    loop x = replicate n 0.0 for k < n do
      let i = n - 1 - k
      let behind = if k > 0 then x[i + 1] else 0
      in x with [i] <- ys[i] - cs[i] * behind

-- Calibration of the local volatility (FinPar): the price of an option for each of `outer` strikes, by Crank and Nicolson's
-- scheme with alternating directions on a grid of `nx` prices by `ny` volatilities, in `nt - 1` steps back from time `t`.
-- gen: nt=const:16 s0=const:0.03 t=const:5.0 alpha=const:0.2 nu=const:0.6 beta=const:0.5
entry locvolcalib [outer] [nx] [ny]
  (outer: i32) (nx: i32) (ny: i32) (nt: i32) (s0: f32) (t: f32) (alpha: f32) (nu: f32) (beta: f32) : [outer]f32 =
  let dx = 20 * alpha * s0 * sqrt t / f32.i32 nx
  let dy = 10 * nu * sqrt t / f32.i32 ny
  let ix = i32.f32 (s0 / dx)
  let iy = ny / 2
  let xs = generate nx (\i -> f32.i32 i * dx - f32.i32 ix * dx + s0)
  let ys = generate ny (\i -> f32.i32 i * dy - f32.i32 iy * dy + log alpha)
  let ddx = second xs
  let ddy = second ys
  let across = replicate ny (nu * nu)
  let time i = t * f32.i32 i / (f32.i32 nt - 1)
  let start = generate outer (\k -> replicate ny (map (\x -> max (x - 0.001 * f32.i32 k) 0) xs))
  let prices =
    loop (prices = start) for step < nt - 1 do
      let now = time (nt - 2 - step)
      let inv = 1 / (time (nt - 1 - step) - now)
      let along = map (\y -> map (\x -> exp (2 * (beta * log x + y - 0.5 * nu * nu * now))) xs) ys
      in
        map
          (\p ->
            let v = map (explicit ddy across) (transpose p)
            let u =
              map3
                (\variance row vs ->
                  map3 (\r e w -> inv * r + 0.5 * e + w) row (explicit ddx variance row) vs
                    |> implicit ddx variance inv)
                along
                p
                (transpose v)
            in
              map2 (\us vs -> implicit ddy across inv (map2 (\u w -> inv * u - 0.5 * w) us vs)) (transpose u) v
                |> transpose)
          prices
  in map (\p -> p[iy, ix]) prices
