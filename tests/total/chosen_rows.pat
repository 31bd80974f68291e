-- fuzz: seed=1 n=3

-- Whether a row is combined with another one depends on a bit of the row: choices between rows in a loop.
entry closure [n] (adj: [8 * n][n]u8) : [8 * n][n]u8 =
  loop m = adj for k < 8 * n do
    let pivot = m[k]
    let (word, bit) = (k / 8, u8.i32 (k % 8)) in
    map (\row -> if (row[word] >> bit) & 1 == 1 then map2 (|) row pivot else row) m
