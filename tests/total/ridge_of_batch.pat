-- fuzz: seed=1 batch=3 m=7 n=5
-- Ridge regression for many small problems: solves (A^T A + lambda I) x = A^T y of each by a Cholesky factorisation
-- and two triangular substitutions.
-- gen: lambda=const:0.5
-- gen: As=normal ys=normal
entry ridge_of_batch [batch][m][n]
  (lambda: f32)
  (As: [batch][m][n]f32)
  (ys: [batch][m]f32)
  : [batch][n]f32 =
  map2
    (\A y ->
      let At = transpose A
      let M = tabulate_2d n n (\i j -> sum (map2 (*) At[i] At[j]) + (if i == j then lambda else 0))
      let rhs = map (\col -> sum (map2 (*) col y)) At in
      backward (cholesky M) (forward (cholesky M) rhs))
    As
    ys

-- The lower triangle of a symmetric positive definite matrix is replaced by its Cholesky factor.
def cholesky [n] (M: [n][n]f32) : [n][n]f32 =
  loop L = M for k < n do
    let d = sqrt L[k, k]
    let col = generate n (\i -> if i > k then L[i, k] / d else if i == k then d else L[i, k]) in
    tabulate_2d n n (\i j ->
      if j == k then col[i] else if j > k && i >= j then L[i, j] - col[i] * col[j] else L[i, j])

def forward [n] (L: [n][n]f32) (b: [n]f32) : [n]f32 =
  loop x = b for i < n do
    let s = loop s = x[i] for j < i do s - L[i, j] * x[j] in x with [i] <- s / L[i, i]

def backward [n] (L: [n][n]f32) (b: [n]f32) : [n]f32 =
  loop x = b for t < n do
    let i = n - 1 - t
    let s = loop s = x[i] for j < t do s - L[n - 1 - j, i] * x[n - 1 - j] in
    x with [i] <- s / L[i, i]
