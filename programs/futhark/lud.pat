-- LU decomposition without pivoting (Rodinia's LUD): the result holds U on and above the diagonal, and L, whose diagonal is 1,
-- below it. Each step divides a column by its pivot and subtracts the outer product of this column and the row of the pivot from
-- the rest of the matrix.
-- gen: A=uniform:1..2
entry lud [n] (A: [n][n]f32) : [n][n]f32 =
  loop (m = A) for k < n do
    generate n (\i ->
      generate n (\j ->
        let l = m[i, k] / m[k, k]
        in if i <= k || j < k then m[i, j] else if j == k then l else m[i, j] - l * m[k, j]))
