-- A polynomial of degree 7.
def poly x a b c d e f g h = ((((((h * x + g) * x + f) * x + e) * x + d) * x + c) * x + b) * x + a

-- The quantile function of the normal distribution (Wichura, algorithm AS 241).
def quantile (p: f32) : f32 =
  let q = p - 0.5
  in
    if abs q <= 0.425 then
      let r = 0.180625 - q * q
      let above =
        poly r 3.387132872796366608 133.14166789178437745 1971.5909503065514427 13731.693765509461125
          45921.953931549871457 67265.770927008700853 33430.575583588128105 2509.0809287301226727
      let below =
        poly r 1 42.313330701600911252 687.1870074920579083 5394.1960214247511077 21213.794301586595867
          39307.89580009271061 28729.085735721942674 5226.495278852854561
      in q * above / below
    else
      let r = sqrt (-log (0.5 - abs q))
      let x =
        if r <= 5 then
          let s = r - 1.6
          let above =
            poly s 1.42343711074968357734 4.6303378461565452959 5.7694972214606914055 3.64784832476320460504
              1.27045825245236838258 0.24178072517745061177 0.0227238449892691845833 0.00077454501427834140764
          let below =
            poly s 1 2.05319162663775882187 1.6763848301838038494 0.68976733498510000455 0.14810397642748007459
              0.0151986665636164571966 0.0005475938084995344946 0.00000000105075007164441684324
          in above / below
        else
          let s = r - 5
          let above =
            poly s 6.6579046435011037772 5.4637849111641143699 1.7848265399172913358 0.29656057182650489123
              0.026532189526576123093 0.0012426609473880784386 0.0000271155556874348757815
              0.000000201033439929228813265
          let below =
            poly s 1 0.59983220655588793769 0.13692988092273580531 0.0148753612908506148525
              0.0007868691311456132591 0.000018463183175100546818 0.00000014215117583164458887
              0.00000000000000204426310338993978564
          in above / below
      in copysign x q

-- A number of a Sobol sequence, between 0 and 1.
def sobol [bits] (directions: [bits]i32) (n: i32) : f32 =
  let gray = (n >> 1) ^ n
  let x = reduceSeq (\x (d, i) -> if (gray >> i) & 1 == 1 then x ^ d else x) 0 (zip directions (iota bits))
  in f32.i32 x / f32.i32 (1 << bits)

-- The steps of a random walk through `dates`, from numbers of the normal distribution: a Brownian bridge, which fixes the dates in
-- the order `at`, each between two that are known (0 if none).
def bridge [dates] (inds: [3][dates]i32) (data: [3][dates]f32) (normals: [dates]f32) : [dates]f32 =
  let walk =
    loop walk = replicate dates 0.0 for i < dates do
      let l = inds[1, i] - 1
      let r = inds[2, i] - 1
      let from_left = if l >= 0 then data[1, i] * walk[l] else 0
      let from_right = if r >= 0 then data[2, i] * walk[r] else 0
      in walk with [inds[0, i] - 1] <- data[0, i] * normals[i] + from_left + from_right
  in generate dates (\d -> if d > 0 then walk[d] - walk[d - 1] else walk[d])

-- The value at `date` of each underlying as a share of its reference; the least of them.
def worst [und] [dates] (prices: [und][dates]f32) (date: i32) : f32 =
  let reference = [3758.05, 11840.0, 1200.0]
  in minimum (generate und (\u -> prices[u, date] / reference[u]))

-- What a contract pays, discounted. Contract 1 is a call; 2 pays at the first date at which all underlyings are above their references;
-- 3 pays less if an underlying fell below a barrier.
def payoff [und] [dates] [k] (contract: i32) (discounts: [k]f32) (detval: f32) (prices: [und][dates]f32) : f32 =
  let final = worst prices (dates - 1)
  in
    if contract == 1 then max 0 ((prices[0, 0] - 4000) * detval) * discounts[0]
    else if contract == 2 then
      let date = loop date = 0 while date < dates - 1 && worst prices date < 1 do date + 1
      let amount =
        if date < dates - 1 || final >= 1 then 1150 + 150 * f32.i32 date
        else if final > 0.75 then 1000
        else 1000 * final
      in amount * discounts[date]
    else if contract == 3 then
      let barrier = [2630.635, 8288.0, 840.0]
      let fell =
        reduceSeq
          (\fell u -> fell || reduceSeq (\f p -> f || p <= barrier[u]) false prices[u])
          false
          (iota und)
      in 100 * discounts[0] + (if fell && final < 1 then 1000 * final else 1000) * discounts[1]
    else 0

-- Prices of options by Monte-Carlo simulation (FinPar): the mean of `mc` payoffs for each model.
-- `directions` are those of a Sobol sequence, `inds` and `data` say how the Brownian bridge is built. A model has correlations, volatilities, drifts,
-- starting prices, a deterministic value and discounts.
-- gen: contract=const:1 inds=const:1
entry optionpricing [mc] [dates] [und] [bits] [models] [k]
  (contract: i32)
  (mc: i32)
  (directions: [dates * und][bits]i32)
  (correlations: [models][und][und]f32)
  (volatilities: [models][dates][und]f32)
  (drifts: [models][dates][und]f32)
  (starts: [models][und]f32)
  (detvals: [models][1]f32)
  (discounts: [models][k]f32)
  (inds: [3][dates]i32)
  (data: [3][dates]f32) : [models]f32 =
  let sample n =
    let steps =
      generate und (\u ->
        bridge inds data (generate dates (\d -> quantile (sobol directions[d * und + u] (n + 1)))))
    in
      generate models (\m ->
        let prices =
          generate und (\u ->
            generate dates (\d ->
              let noise = reduceSeq (+) 0 (generate und (\v -> if v <= u then steps[v, d] * correlations[m, u, v] else 0))
              in exp (drifts[m, d, u] + noise * volatilities[m, d, u]))
              |> scanSeq (*) starts[m, u])
        in payoff contract discounts[m] detvals[m, 0] prices)
  in map (/ f32.i32 mc) (reduce (map2 (+)) (replicate models 0) (map sample (iota mc)))
