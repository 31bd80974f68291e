-- fuzz: seed=1 n=5

-- An array of many elements, each of which reads names in front of it: rewriting must not try all combinations of them.
def rates (y: [32]f32) : [32]f32 =
  let v0 = y[0] + y[1]
  let v1 = y[1] + y[4]
  let v2 = y[2] + y[7]
  let v3 = y[3] + y[10]
  let v4 = y[4] + y[13]
  let v5 = y[5] + y[16]
  let v6 = y[6] + y[19]
  let v7 = y[7] + y[22]
  let v8 = y[8] + y[25]
  let v9 = y[9] + y[28]
  let v10 = y[10] + y[31]
  let v11 = y[11] + y[2]
  let v12 = y[12] + y[5]
  let v13 = y[13] + y[8]
  let v14 = y[14] + y[11]
  let v15 = y[15] + y[14]
  let v16 = y[16] + y[17]
  let v17 = y[17] + y[20]
  let v18 = y[18] + y[23]
  let v19 = y[19] + y[26]
  let v20 = y[20] + y[29]
  let v21 = y[21] + y[0]
  let v22 = y[22] + y[3]
  let v23 = y[23] + y[6]
  let v24 = y[24] + y[9]
  let v25 = y[25] + y[12]
  let v26 = y[26] + y[15]
  let v27 = y[27] + y[18]
  let v28 = y[28] + y[21]
  let v29 = y[29] + y[24]
  let v30 = y[30] + y[27]
  let v31 = y[31] + y[30] in
  [v0 * v3 + v1,
    v1 * v10 + v6,
    v2 * v17 + v11,
    v3 * v24 + v16,
    v4 * v31 + v21,
    v5 * v6 + v26,
    v6 * v13 + v31,
    v7 * v20 + v4,
    v8 * v27 + v9,
    v9 * v2 + v14,
    v10 * v9 + v19,
    v11 * v16 + v24,
    v12 * v23 + v29,
    v13 * v30 + v2,
    v14 * v5 + v7,
    v15 * v12 + v12,
    v16 * v19 + v17,
    v17 * v26 + v22,
    v18 * v1 + v27,
    v19 * v8 + v0,
    v20 * v15 + v5,
    v21 * v22 + v10,
    v22 * v29 + v15,
    v23 * v4 + v20,
    v24 * v11 + v25,
    v25 * v18 + v30,
    v26 * v25 + v3,
    v27 * v0 + v8,
    v28 * v7 + v13,
    v29 * v14 + v18,
    v30 * v21 + v23,
    v31 * v28 + v28]

entry array_of_names [n] (xs: [n]f32) (y: [32]f32) : [n][32]f32 =
  map (\x -> rates (map (+ x) y)) xs
