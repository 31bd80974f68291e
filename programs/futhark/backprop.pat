-- A number of a Sobol sequence, between 0 and 1: the direction numbers of the ones in the Gray code of `n`, added without carry.
def sobol [bits] (directions: [bits]i32) (n: i32) : f32 =
  let gray = (n >> 1) ^ n
  let x = reduceSeq (\x (d, i) -> if (gray >> i) & 1 == 1 then x ^ d else x) 0 (zip directions (iota bits))
  in f32.i32 x / (f32.i32 (1 << bits) + 1.0)

-- The weights between two layers: row 0 is the bias. Element (i, j) is number `offset + i * (n + 1) + j + 1` of the sequence.
def weights [bits] [m] [n] (m: i32) (n: i32) (directions: [bits]i32) (offset: i32) : [m][n]f32 =
  tabulate_2d m n (\i j -> sobol directions (offset + i * (n + 1) + j + 1))

-- The output of a layer.
def forward [n] [h] (units: [n]f32) (w: [n + 1][h]f32) : [h]f32 =
  map2 (\column bias -> 1 / (1 + exp (-(bias + sum (map2 (*) column units))))) (transpose w[1:, :]) w[0, :]

-- The weights after a step against the error.
def adjusted [n] [h] (delta: [h]f32) (units: [n]f32) (w: [n + 1][h]f32) : [n + 1][h]f32 =
  map2 (\row unit -> map2 (\x d -> x + 0.3 * d * unit) row delta) w (concat [1.0] units)

-- One step of training of a network of three layers by back-propagation (Rodinia): n units of input, 16 hidden ones, one of
-- output whose target is 0.1. The inputs and the weights are numbers of a Sobol sequence. Returns the errors of the output and
-- of the hidden layer, and the new weights, with the numbers of the sequence before them in a first column.
-- gen: directions=whole:1..1073741824
entry backprop [n] [bits] (n: i32) (directions: [bits]i32) : (f32, f32, [n + 1][17]f32, [17][2]f32) =
  let hidden_offset = 1 + (n + 1) * 17
  let units = generate n (\i -> sobol directions (hidden_offset + 17 * 2 + 1 + i))
  let w_in = weights (n + 1) 16 directions 1
  let w_out = weights 17 1 directions hidden_offset
  let hidden = forward units w_in
  let output = forward hidden w_out
  let delta_out = map (\o -> o * (1 - o) * (0.1 - o)) output
  let delta_hidden = map2 (\h row -> h * (1 - h) * sum (map2 (*) delta_out row)) hidden w_out[1:, :]
  let with_first w offset width =
    map2 (\row i -> concat [sobol directions (offset + i * width)] row) w (indices w)
  in
    ( sum (map abs delta_out)
    , sum (map abs delta_hidden)
    , with_first (adjusted delta_hidden units w_in) 1 17
    , with_first (adjusted delta_out hidden w_out) hidden_offset 2
    )
