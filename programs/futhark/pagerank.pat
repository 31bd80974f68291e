-- PageRank without damping (Accelerate's benchmark): `iterations` steps from equal ranks. The rank of a page is divided among its
-- links; the ranks of pages without links are divided among all pages.
-- `froms` and `tos` are the ends of each link, `sizes` the number of links from each page.
-- gen: froms=whole:0..n tos=whole:0..n sizes=whole:0..8 iterations=const:20
entry pagerank [m] [n] (froms: [m]i32) (tos: [m]i32) (sizes: [n]i32) (iterations: i32) : [n]f32 =
  loop (ranks = replicate n (1 / f32.i32 n)) for step < iterations do
    let shares = map2 (\rank size -> if size == 0 then 0 else rank / f32.i32 size) ranks sizes
    let arriving = hist (+) 0 n tos (gather shares froms)
    let dangling = sum (map2 (\rank size -> if size == 0 then rank else 0) arriving sizes)
    in map (+ dangling / f32.i32 n) arriving
