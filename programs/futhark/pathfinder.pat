-- The least costs of paths through a grid (Rodinia's Pathfinder), from any cell of the first row to each of the last one. A step
-- goes to the next row, and at most one column aside.
-- gen: grid=whole:0..10
entry pathfinder [rows] [columns] (grid: [rows][columns]i32) : [columns]i32 =
  loop costs = grid[0] for row in grid[1:] do
    map2 (\w cost -> cost + minimum w) (slide 3 1 (pad 1 1 clamp costs)) row
