-- The model of a heart muscle cell by Shannon et al. with the signalling by calmodulin of Saucerman and Bers, as in Rodinia's
-- Myocyte. Concentrations are in mM (in uM for calmodulin), times in ms, potentials in mV, currents in uA/uF, volumes in L.
let frt = 96485.0 / 8314 / 310
let faraday = 96485.0
let capacity = 1.381e-10
let vcell = 3.1416 * 10.25 * 10.25 * 100 * 1e-15
let vmyo = 0.65 * vcell
let vsr = 0.035 * vcell
let vsl = 0.02 * vcell
let vjunc = 0.0539 * 0.01 * vcell
let ca_juncsl = 1 / 1.2134e12
let ca_slmyo = 1 / 2.6851e11
let na_juncsl = 3 / 1.6382e14
let na_slmyo = 3 / 1.8308e12
let k_out = 5.4
let na_out = 140.0
let ca_out = 1.8

def sigmoid (x: f32) : f32 = 1 / (1 + exp x)

-- The currents through the two parts of the membrane, at the junction (11 %) and elsewhere.
def nernst (charge: f32) (out: f32) (inside: f32) : f32 = log (out / inside) / frt / charge

-- The sodium-potassium pump, without its share.
def pump (v: f32) (na: f32) : f32 =
  let sigma = (exp (na_out / 67.3) - 1) / 7
  let f = 1 / (1 + 0.1245 * exp (-0.1 * v * frt) + 0.0365 * sigma * exp (-v * frt))
  in 1.90719 * f * k_out / (1 + (11 / na) ** 4) / (k_out + 1.5)

-- The sodium-calcium exchanger, without its share.
def exchanger (v: f32) (na: f32) (ca: f32) : f32 =
  let na3 = na * na * na
  let out3 = na_out * na_out * na_out
  let affinity = 1 / (1 + (0.256e-3 / ca) ** 3)
  let back = exp ((0.35 - 1) * v * frt)
  let above = exp (0.35 * v * frt) * na3 * ca_out - back * out3 * ca
  let below =
    3.59e-3 * out3 * (1 + (na / 12.29) ** 3) + 87.5 ** 3 * ca + 12.29 ** 3 * ca_out * (1 + ca / 3.59e-3)
      + 1.3 * na3
      + na3 * ca_out
      + out3 * ca
  in 9 * affinity * above / (below * (1 + 0.27 * back))

-- The flow of an ion of `charge` through an open channel.
def drift (v: f32) (permeability: f32) (charge: f32) (share: f32) (inside: f32) (out: f32) : f32 =
  let e = exp (charge * v * frt)
  in permeability * charge * charge * (v * faraday * frt) * (share * inside * e - share * out) / (e - 1)

-- The reactions of calmodulin in one compartment, from place `o` in the state: the changes of its 15 substances, and the flow
-- of calcium that they take.
def calmodulin (y: [91]f32) (o: i32) (p: [16]f32) (q: i32) (ca: f32) : [16]f32 =
  let (cam, ca2cam, ca4cam) = (y[o], y[o + 1], y[o + 2])
  let (camb, ca2camb, ca4camb) = (y[o + 3], y[o + 4], y[o + 5])
  let (pb2, pb, pt, pt2, pa) = (y[o + 6], y[o + 7], y[o + 8], y[o + 9], y[o + 10])
  let (ca4can, can0, can2, can4) = (y[o + 11], y[o + 12], y[o + 13], y[o + 14])
  let (btot, kinase, can_total, pp1) = (p[q + 1], p[q + 2], p[q + 3], p[q + 4])
  let kd02 = 0.0025 * (1 + 135 / 0.94 - 1 / 0.012) * (1 + 135 / 8.1 + 1 / 0.022)
  let kd24 = 0.128 * (1 + 135 / 0.64 + 1 / 0.0014) * (1 + 135 / 13.0 - 1 / 0.153)
  let k20 = 10.0
  let k02 = k20 / kd02
  let k42 = 500.0
  let k24 = k42 / kd24
  let off = 0.0014
  let on = off / 0.2
  let kbi = 2.2
  let kib = kbi / 33.5e-3
  let kpp1 = 1.72
  let m4off = 0.0013
  let m2off = 2508 * m4off
  let m0off = 165 * m2off
  let ca2 = ca * ca
  let r02 = k02 * ca2 * cam - k20 * ca2cam
  let r24 = k24 * ca2 * ca2cam - k42 * ca4cam
  let b = btot - camb - ca2camb - ca4camb
  let r02b = k02 * ca2 * camb - k20 / 100 * ca2camb
  let r24b = k24 * ca2 * ca2camb - k42 * ca4camb
  let r0b = on * cam * b - off * camb
  let r2b = on * ca2cam * b - off / 100 * ca2camb
  let r4b = on * ca4cam * b - off / 100 * ca4camb
  let ca2can = can_total - ca4can - can0 - can2 - can4
  let rca4can = 2 * ca2 * ca2can - ca4can
  let r02can = k02 * ca2 * can0 - k20 / 165 * can2
  let r24can = k24 * ca2 * can2 - k20 / 2508 * can4
  let r0can = 46 * cam * ca4can - m0off * can0
  let r2can = 46 * ca2cam * ca4can - m2off * can2
  let r4can = 46 * ca4cam * ca4can - m4off * can4
  let inactive = 1 - pb2 - pb - pt - pt2 - pa
  let rib2 = kib * ca2cam * inactive - kib * 5 * pb2
  let rb2b = k24 * ca2 * pb2 - k42 * 33.5e-3 / 5 * pb
  let rib = kib * ca4cam * inactive - kbi * pb
  let t = pb + pt + pt2 + pa
  let rbt = (0.055 * t + 0.0074 * t * t + 0.015 * t * t * t) * pb - kpp1 * pp1 * pt / (11.5 + kinase * pt)
  let rtt2 = k42 * 33.5e-6 / 5 * pt - k24 * ca2 * pt2
  let rta = kbi / 1000 * pt - kib * ca4cam * pa
  let rt2a = kib * 5 * pt2 - kib * ca2cam * pa
  let rt2b2 = kpp1 * pp1 * pt2 / (11.5 + kinase * pt2)
  let rai = kpp1 * pp1 * pa / (11.5 + kinase * pa)
  in
    map (* 1e-3)
      [ -r02 - r0b - r0can
      , r02 - r24 - r2b - r2can + kinase * (rt2a - rib2)
      , r24 - r4b - r4can + kinase * (rta - rib)
      , r0b - r02b
      , r02b + r2b - r24b
      , r24b + r4b
      , rib2 - rb2b + rt2b2
      , rib + rb2b - rbt
      , rbt - rta - rtt2
      , rtt2 - rt2a - rt2b2
      , rta + rt2a - rai
      , rca4can - r0can - r2can - r4can
      , r0can - r02can
      , r2can + r02can - r24can
      , r4can + r24can
      , 2 * kinase * (rtt2 - rb2b) - 2 * (r02 + r24 + r02b + r24b + rca4can + r02can + r24can)
      ]

-- The rate of change of each part of the state.
def rates (time: f32) (y: [91]f32) (p: [16]f32) : [91]f32 =
  let v = y[38]
  let (na_j, na_sl, na_i, k_i) = (y[31], y[32], y[33], y[34])
  let (ca_sr, ca_j, ca_sl, ca_i) = (y[30], y[35], y[36], y[37])
  let ek = nernst 1 k_out k_i
  let ecl = nernst 1 15 150
  -- Sodium: the fast current, the background, the pump.
  let am = 0.32 * (v + 47.13) / (1 - exp (-0.1 * (v + 47.13)))
  let bm = 0.08 * exp (-v / 11)
  let (ah, aj, bh, bj) =
    if v >= -40 then (0, 0, sigmoid (-(v + 10.66) / 11.1) / 0.13, 0.3 * exp (-2.535e-7 * v) * sigmoid (-0.1 * (v + 32)))
    else
      ( 0.135 * exp ((80 + v) / -6.8)
      , (-127140 * exp (0.2444 * v) - 3.474e-5 * exp (-0.04391 * v)) * (v + 37.78) * sigmoid (0.311 * (v + 79.23))
      , 3.56 * exp (0.079 * v) + 3.1e5 * exp (0.35 * v)
      , 0.1212 * exp (-0.01052 * v) * sigmoid (-0.1378 * (v + 40.14))
      )
  let fast na = 16 * y[0] * y[0] * y[0] * y[1] * y[2] * (v - nernst 1 na_out na)
  let background na = 0.297e-3 * (v - nernst 1 na_out na)
  let pump_j = 0.11 * pump v na_j
  let pump_sl = 0.89 * pump v na_sl
  -- Potassium.
  let xr = sigmoid (-(v + 50) / 7.5)
  let tau_xr =
    1 / (0.00138 * (v + 7) / (1 - exp (-0.123 * (v + 7))) + 6.1e-4 * (v + 10) / (exp (0.145 * (v + 10)) - 1))
  let i_kr = 0.03 * sqrt (k_out / 5.4) * y[11] * sigmoid ((v + 33) / 22.4) * (v - ek)
  let slow ca = 0.07 * (0.057 + 0.19 * sigmoid ((-7.2 + (3 - log ca / log 10)) / 0.6))
  let eks = nernst 1 (k_out + 0.01833 * na_out) (k_i + 0.01833 * na_i)
  let xs = sigmoid (-(v - 1.5) / 16.7)
  let tau_xs =
    1 / (7.19e-5 * (v + 30) / (1 - exp (-0.148 * (v + 30))) + 1.31e-4 * (v + 30) / (exp (0.0687 * (v + 30)) - 1))
  let i_ks = (0.11 * slow ca_j * y[11] * y[11] + 0.89 * slow ca_sl * y[12] * y[12]) * (v - eks)
  let i_kp = 0.001 * sigmoid (7.488 - v / 5.98) * (v - ek)
  let xto = sigmoid (-(v + 3) / 15)
  let yto = sigmoid ((v + 33.5) / 10)
  let i_to = (0.06 * y[7] * (y[8] + 0.5 * y[39]) + 0.02 * y[9] * y[10]) * (v - ek)
  let aki = 1.02 * sigmoid (0.2385 * (v - ek - 59.215))
  let bki =
    (0.49124 * exp (0.08032 * (v + 5.476 - ek)) + exp (0.06175 * (v - ek - 594.31)))
      * sigmoid (-0.5143 * (v - ek + 4.753))
  let i_ki = 0.9 * sqrt (k_out / 5.4) * aki / (aki + bki) * (v - ek)
  -- Chloride.
  let i_cl =
    (0.11 * 0.109625 / (1 + 0.1 / ca_j) + 0.89 * 0.109625 / (1 + 0.1 / ca_sl)) * (v - ecl) + 9e-3 * (v - ecl)
  -- Calcium: the channel of type L, the exchanger, the pump, the background.
  let d = sigmoid (-(v + 14.5) / 6)
  let tau_d = d * (1 - exp (-(v + 14.5) / 6)) / (0.035 * (v + 14.5))
  let f = sigmoid ((v + 35.06) / 3.6) + 0.6 * sigmoid ((50 - v) / 20)
  let tau_f = 1 / (0.0197 * exp (-(0.0337 * (v + 14.5)) ** 2) + 0.02)
  let open = 0.45 * y[3] * y[4]
  let (open_j, open_sl) = (open * 0.9 * (1 - y[5]), open * 0.1 * (1 - y[6]))
  let i_ca_j = drift v 5.4e-4 2 0.341 ca_j ca_out * open_j
  let i_ca_sl = drift v 5.4e-4 2 0.341 ca_sl ca_out * open_sl
  let i_cak = drift v 2.7e-7 1 0.75 k_i k_out * (open_j + open_sl)
  let i_cana_j = drift v 1.5e-8 1 0.75 na_j na_out * open_j
  let i_cana_sl = drift v 1.5e-8 1 0.75 na_sl na_out * open_sl
  let ncx_j = 0.11 * exchanger v na_j ca_j
  let ncx_sl = 0.89 * exchanger v na_sl ca_sl
  let ca_pump ca = 0.0673 * ca ** 1.6 / (0.5e-3 ** 1.6 + ca ** 1.6)
  let pca_j = 0.11 * ca_pump ca_j
  let pca_sl = 0.89 * ca_pump ca_sl
  let cab_j = 0.11 * 2.513e-4 * (v - nernst 2 ca_out ca_j)
  let cab_sl = 0.89 * 2.513e-4 * (v - nernst 2 ca_out ca_sl)
  let to_mm = capacity / (vmyo * 2 * faraday) * 1e3
  -- The store of calcium: release, pump, leak.
  let k_ca_sr = 15 - 14 / (1 + (0.45 / ca_sr) ** 2.5)
  let (ko, ki) = (10 / k_ca_sr, 0.5 * k_ca_sr)
  let ri = 1 - y[13] - y[14] - y[15]
  let r_o = ko * ca_j * ca_j * y[13] - 0.06 * y[14]
  let o_i = ki * ca_j * y[14] - 0.005 * y[15]
  let release = 25 * y[14] * (ca_sr - ca_j)
  let (up, down) = ((ca_i / 0.246e-3) ** 1.787, (ca_sr / 1.7) ** 1.787)
  let serca = 2.86e-4 * (up - down) / (1 + up + down)
  let leak = 5.348e-6 * (ca_sr - ca_j)
  -- Buffers.
  let binds on free total bound off = on * free * (total - bound) - off * bound
  let b16 = binds 0.1e-3 na_j 7.561 y[16] 1e-3
  let b17 = binds 0.1e-3 na_sl 1.65 y[17] 1e-3
  let b18 = binds 32.7 ca_i 70e-3 y[18] 19.6e-3
  let b19 = 2.37 * ca_i * (0.14 - y[19] - y[20]) - 0.032e-3 * y[19]
  let b20 = 3e-3 * (0.14 - y[19] - y[20]) - 3.33e-3 * y[20]
  let b22 = 13.8 * ca_i * (0.14 - y[22] - y[23]) - 0.46e-3 * y[22]
  let b23 = 0.0157 * (0.14 - y[22] - y[23]) - 0.057e-3 * y[23]
  let b24 = binds 100 ca_i (19 * 0.9e-3) y[24] 60e-3
  let b25 = binds 100 ca_j (4.62e-3 * vmyo / vjunc * 0.1) y[25] 1.3
  let b26 = binds 100 ca_sl (37.38e-3 * vmyo / vsl) y[26] 1.3
  let b27 = binds 100 ca_j (1.65e-3 * vmyo / vjunc * 0.1) y[27] 30e-3
  let b28 = binds 100 ca_sl (13.35e-3 * vmyo / vsl) y[28] 30e-3
  let b29 = binds 100 ca_sr 2.7 y[29] 65
  -- Sums of the currents, and the stimulus.
  let i_na_j = 0.11 * (fast na_j + background na_j) + 3 * ncx_j + 3 * pump_j + i_cana_j
  let i_na_sl = 0.89 * (fast na_sl + background na_sl) + 3 * ncx_sl + 3 * pump_sl + i_cana_sl
  let i_k = i_to + i_kr + i_ks + i_ki - 2 * (pump_j + pump_sl) + i_cak + i_kp
  let i_catot_j = i_ca_j + cab_j + pca_j - 2 * ncx_j
  let i_catot_sl = i_ca_sl + cab_sl + pca_sl - 2 * ncx_sl
  let stimulus = if time - p[0] * trunc (time / p[0]) <= 5 then 9.5 else 0
  -- Calmodulin in the dyad, below the membrane and in the cytosol, and its diffusion between them.
  let dyad = calmodulin y 46 p 1 (ca_j * 1e3)
  let sl = calmodulin y 61 p 6 (ca_sl * 1e3)
  let cyt = calmodulin y 76 p 11 (ca_i * 1e3)
  let bound =
    y[46] + y[47] + y[48] + y[49] + y[50] + y[51] + p[3] * (y[52] + y[53] + y[54] + y[55]) + y[58] + y[59] + y[60]
  let b_dyad = p[2] - bound
  let across k = 1e-3 * ((if k == 0 then 0.0014 else 0.000014) * y[46 + k] - 0.007 * b_dyad * y[61 + k])
  let to_myo k = 8.587e-15 * (y[61 + k] - y[76 + k])
  let dyad_of k = dyad[k] - across k
  let sl_of k = sl[k] + across k * 1.779e-14 / 6.6013e-13 - to_myo k / 6.6013e-13
  let cyt_of k = cyt[k] + to_myo k / 2.1454e-11
  let all =
    [ am * (1 - y[0]) - bm * y[0]
    , ah * (1 - y[1]) - bh * y[1]
    , aj * (1 - y[2]) - bj * y[2]
    , (d - y[3]) / tau_d
    , (f - y[4]) / tau_f
    , 1.7 * ca_j * (1 - y[5]) - 11.9e-3 * y[5]
    , 1.7 * ca_sl * (1 - y[6]) - 11.9e-3 * y[6]
    , (xto - y[7]) / (9 * sigmoid ((v + 3) / 15) + 0.5)
    , (yto - y[8]) / (3000 * sigmoid ((v + 60) / 10) + 30)
    , (xto - y[9]) / (3.5 * exp (-v * v / 900) + 1.5)
    , (yto - y[10]) / (20 * yto + 20)
    , (xr - y[11]) / tau_xr
    , (xs - y[12]) / tau_xs
    , 0.005 * ri - ki * ca_j * y[13] - r_o
    , r_o - o_i
    , o_i - (0.06 * y[15] - ko * ca_j * ca_j * ri)
    , b16
    , b17
    , b18
    , b19
    , b20
    , 0
    , b22
    , b23
    , b24
    , b25
    , b26
    , b27
    , b28
    , b29
    , serca * vmyo / vsr - (leak * vmyo / vsr + release) - b29
    , -i_na_j * capacity / (vjunc * faraday) + na_juncsl / vjunc * (na_sl - na_j) - b16
    , -i_na_sl * capacity / vsl / faraday + na_juncsl / vsl * (na_j - na_sl) + na_slmyo / vsl * (na_i - na_sl) - b17
    , na_slmyo / vmyo * (na_sl - na_i)
    , 0
    , -i_catot_j * capacity / (vjunc * 2 * faraday) + ca_juncsl / vjunc * (ca_sl - ca_j) - (b25 + b27)
        + release * vsr / vjunc
        + leak * vmyo / vjunc
        + 1e-3 * dyad[15]
    , -i_catot_sl * capacity / (vsl * 2 * faraday) + ca_juncsl / vsl * (ca_j - ca_sl)
        + ca_slmyo / vsl * (ca_i - ca_sl)
        - (b26 + b28)
        + 1e-3 * sl[15]
    , -serca - (b18 + b19 + b20 + b22 + b23 + b24) + ca_slmyo / vmyo * (ca_sl - ca_i) + 1e-3 * cyt[15]
    , stimulus - (i_na_j + i_na_sl + i_cl + i_catot_j + i_catot_sl + i_k)
    , (yto - y[39]) / (2800 * sigmoid ((v + 60) / 10) + 220)
    , 0
    , 0
    , -(i_ca_j + i_ca_sl) * to_mm
    , -(pca_j + pca_sl) * to_mm
    , 2 * (ncx_j + ncx_sl) * to_mm
    , -(cab_j + cab_sl) * to_mm
    , dyad_of 0, dyad_of 1, dyad_of 2, dyad[3], dyad[4], dyad[5], dyad[6], dyad[7]
    , dyad[8], dyad[9], dyad[10], dyad[11], dyad[12], dyad[13], dyad[14]
    , sl_of 0, sl_of 1, sl_of 2, sl[3], sl[4], sl[5], sl[6], sl[7]
    , sl[8], sl[9], sl[10], sl[11], sl[12], sl[13], sl[14]
    , cyt_of 0, cyt_of 1, cyt_of 2, cyt[3], cyt[4], cyt[5], cyt[6], cyt[7]
    , cyt[8], cyt[9], cyt[10], cyt[11], cyt[12], cyt[13], cyt[14]
    ]
  in map (\x -> if isnan x || isinf x then 0.0001 else x) all

-- How the steps before make up the state of each of the 13 evaluations of Fehlberg's method of order 7 and 8, and its time.
let tableau =
  [ [0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  , [2.0 / 27, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  , [1.0 / 36, 3.0 / 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  , [1.0 / 24, 0, 3.0 / 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  , [20.0 / 48, 0, -75.0 / 48, 75.0 / 48, 0, 0, 0, 0, 0, 0, 0, 0, 0]
  , [1.0 / 20, 0, 0, 5.0 / 20, 4.0 / 20, 0, 0, 0, 0, 0, 0, 0, 0]
  , [-25.0 / 108, 0, 0, 125.0 / 108, -260.0 / 108, 250.0 / 108, 0, 0, 0, 0, 0, 0, 0]
  , [31.0 / 300, 0, 0, 0, 61.0 / 225, -2.0 / 9, 13.0 / 900, 0, 0, 0, 0, 0, 0]
  , [2.0, 0, 0, -53.0 / 6, 704.0 / 45, -107.0 / 9, 67.0 / 90, 3, 0, 0, 0, 0, 0]
  , [-91.0 / 108, 0, 0, 23.0 / 108, -976.0 / 135, 311.0 / 54, -19.0 / 60, 17.0 / 6, -1.0 / 12, 0, 0, 0, 0]
  , [ 2383.0 / 4100, 0, 0, -341.0 / 164, 4496.0 / 1025, -301.0 / 82, 2133.0 / 4100, 45.0 / 82
    , 45.0 / 164, 18.0 / 41, 0, 0, 0]
  , [3.0 / 205, 0, 0, 0, 0, -6.0 / 41, -3.0 / 205, -3.0 / 41, 3.0 / 41, 6.0 / 41, 0, 0, 0]
  , [ -1777.0 / 4100, 0, 0, -341.0 / 164, 4496.0 / 1025, -289.0 / 82, 2193.0 / 4100, 51.0 / 82
    , 33.0 / 164, 12.0 / 41, 0, 1, 0]
  ]
let times = [0.0, 2.0 / 27, 1.0 / 9, 1.0 / 6, 5.0 / 12, 1.0 / 2, 5.0 / 6, 1.0 / 6, 2.0 / 3, 1.0 / 3, 1, 0, 1]

-- One step: the state behind it, and an estimate of its error.
def fehlberg (time: f32) (h: f32) (y: [91]f32) (p: [16]f32) : ([91]f32, [91]f32) =
  let ks =
    loop ks = replicate 13 (replicate 91 0.0) for s < 13 do
      let row = tableau[s]
      let at = generate 91 (\i -> y[i] + h * reduceSeq (\sum j -> sum + row[j] * ks[j, i]) 0 (iota 13))
      in ks with [s, :] <- rates (time + times[s] * h) at p
  in
    ( generate 91 (\i ->
        y[i]
          + h
            * (41.0 / 840 * (ks[0, i] + ks[10, i]) + 34.0 / 105 * ks[5, i] + 9.0 / 35 * (ks[6, i] + ks[7, i])
              + 9.0 / 280 * (ks[8, i] + ks[9, i])))
    , generate 91 (\i -> abs (41.0 / 840 * (ks[0, i] + ks[10, i] - ks[11, i] - ks[12, i])))
    )

-- Whether `xmax` steps succeeded, and the state behind them. A step is tried with smaller parts until its error is small.
def solve (xmax: i32) (p: [16]f32) (start: [91]f32) : (bool, [91]f32) =
  let tolerance = 10 / f32.i32 xmax
  let (_, ok, y) =
    loop (step, ok, y) = (0, xmax >= 0, start) while ok && step < xmax do
      let now = f32.i32 step
      let (_, _, done, next) =
        loop (tries, h, done, next) = (0, 1.0, false, y) while !done && tries < 12 do
          let (next, error) = fehlberg now h y p
          let size = map (\x -> if x == 0 then tolerance else abs x) y
          let exact = reduceSeq (\all e -> all && !(e > 0)) true error
          let scale =
            reduceSeq (\least (e, s) -> min least (0.8 * (tolerance * s / e) ** (1.0 / 7))) f32.inf (zip error size)
          let small = reduceSeq (\all (e, s) -> all && e <= tolerance * s) true (zip error size)
          let h = min 0.9 (h * clamp scale 0.125 4)
          let h =
            if now + h > f32.i32 xmax then f32.i32 (xmax - step)
            else if now + 1.5 * h > f32.i32 xmax then 0.5 * h
            else h
          in (tries + 1, h, exact || small, next)
      in (step + 1, done, next)
  in (ok, y)

-- `workload` cells with slightly different initial states, integrated over `xmax` ms.
-- gen: repeat=const:1 eps=const:0.0001 xmax=const:1 y0=uniform:0.1..1 p=uniform:100..1000
entry myocyte [workload] (repeat: i32) (eps: f32) (workload: i64) (xmax: i32) (y0: [91]f32) (p: [16]f32)
  : (bool, [workload][91]f32) =
  let (oks, ys) =
    unzip (generate workload (\i -> solve xmax p (map (+ f32.i32 (i % repeat) * eps) y0)))
  in (and oks, ys)
