-- fuzz: seed=1 batch=5 n=9

-- A step of the loop reads a row and a column, and changes elements behind them.
entry factorisations_of_batch [batch][n] (As: [batch][n][n]f32) : [batch][n][n]f32 =
  map
    (\A ->
      let M = tabulate_2d n n (\i j -> sum (map2 (*) A[i] A[j]) + (if i == j then 4 else 0)) in
      loop L = M for k < n do
        let d = L[k, k]
        let col = generate n (\i -> if i > k then L[i, k] / d else L[i, k]) in
        tabulate_2d n n (\i j ->
          if j == k then col[i] else if j > k && i > k then L[i, j] - col[i] * L[k, j] else L[i, j]))
    As
