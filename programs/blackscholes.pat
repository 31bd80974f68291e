-- The cumulative normal distribution (Abramowitz and Stegun, 26.2.17).
def cnd (d: f32) : f32 =
  let k = 1 / (1 + 0.2316419 * abs d)
  let a = k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
  let v = 0.39894228040143267794 * exp (-0.5 * d * d) * (k * (0.31938153 + a)) in
  if d > 0
  then 1 - v
  else v

-- A call and a put option of Black and Scholes.
def option (r: f32) (v: f32) s x t =
  let q = sqrt t
  let d1 = (log (s / x) + (r + 0.5 * v * v) * t) / (v * q)
  let d2 = d1 - v * q
  let n1 = cnd d1
  let n2 = cnd d2
  let e = exp (-r * t) in
  (s * n1 - x * e * n2, x * e * (1 - n2) - s * (1 - n1))

-- The prices of European options: what they are on costs S, they are struck at X and run for T
-- years; R is the riskless rate and V the volatility.
-- gen: S=uniform:5..30 X=uniform:1..100 T=uniform:0.25..10 R=const:0.02 V=const:0.3
entry blackscholes [n] (S: [n]f32) (X: [n]f32) (T: [n]f32) (R: f32) (V: f32) : ([n]f32, [n]f32) =
  unzip (map3 (option R V) S X T)
