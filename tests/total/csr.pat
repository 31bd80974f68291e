-- fuzz: seed=1 r=10 nz=10 c=5

-- gen: off=iota cols=uniform:0..c
entry csr [r][nz][c] (off: [r+1]i32) (cols: [nz]i32) (vals: [nz]f32) (x: [c]f32) : [r]f32 =
  map (\i -> loop (acc = 0.0) for j < off[i+1] - off[i] do acc + vals[off[i]+j] * x[cols[off[i]+j]]) (iota r)
