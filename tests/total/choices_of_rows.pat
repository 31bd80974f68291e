-- fuzz: seed=1 n=9 m=7 d=5

-- Choices between rows in maps are choices of elements; slices of two dimensions at computed places are computed element by element.
def patch [h] [w] (P: [h][w]f32) (i: i32) (j: i32) : [3][3]f32 = P[i:i + 3, j:j + 3]
-- gen: table=normal ids=whole:-2..m P=normal
entry choices [n] [m] [d] (table: [m][d]f32) (ids: [n]i32) (P: [n + 2][m + 2]f32)
    : ([n][d]f32, [n]f32, [n][2][d]f32, [n][d]f32, [n][m]f32, [n][m]f32) =
  let rows = map (\t -> if t >= 0 then table[t] else replicate d 0) ids
  in ( rows
     , map (\t -> sum (if t > 1 then map (* 2) table[t] else if t == 0 then table[0] else replicate d 0.5)) ids
     , map (\t -> if t < 0 then replicate 2 table[0] else [table[t], table[0]]) ids
     , map2 (\t r -> if t % 2 == 0 then r else reverse r) ids rows
     , tabulate_2d n m (\i j -> maximum (map maximum P[i:i + 3, j:j + 3]))
     , tabulate_2d n m (\i j ->
         let q = patch P i j
         in sum (map sum (map2 (map2 (\x y -> (x - y) * (x - y))) q P[i:i + 3, j + 2:j - 1:-1])))
     )
