type point = (f32, f32, f32)

-- How far along a line, of 0 to 1 in all, the next border between two voxels is in one dimension.
def crossing (from: f32) (d: f32) (voxel: i32) : f32 =
  if d > 0 then (f32.i32 (voxel + 1) - from) / d
  else if d < 0 then (f32.i32 voxel - from) / d
  else f32.inf

-- The voxels that a line crosses in a volume of `g` voxels in each dimension, one after the other, and its length in each; -1 behind
-- its end (Siddon's algorithm).
def path [g] (g: i32) (from: point, to: point) : [3*g](i32, f32) =
  let (ax, ay, az) = from
  let (bx, by, bz) = to
  let (dx, dy, dz) = (bx - ax, by - ay, bz - az)
  let length = sqrt (dx * dx + dy * dy + dz * dz)
  let voxel x = clamp (i32.f32 x) 0 (g - 1)
  let start = (0.0, voxel ax, voxel ay, voxel az, -1, 0.0)
  let step (t, x, y, z, _, _) _ =
    let (tx, ty, tz) = (crossing ax dx x, crossing ay dy y, crossing az dz z)
    let next = min 1 (min tx (min ty tz))
    let here = if t < 1 then (z * g + y) * g + x else -1
    let side d = if d > 0 then 1 else -1
    let (x, y, z) =
      if tx <= ty && tx <= tz then (x + side dx, y, z)
      else if ty <= tz then (x, y + side dy, z)
      else (x, y, z + side dz)
    in (next, x, y, z, here, (next - t) * length)
  in map (\(_, _, _, _, voxel, part) -> (voxel, part)) (scanSeq step start (iota (3 * g)))

-- List-mode OSEM, the reconstruction of an image from the events of a PET scanner, here one that records where the line of an event
-- enters and leaves the volume of `g` voxels in each dimension. For each subset of the events, an image is improved by what the lines of the
-- events have in excess of it.
-- gen: g=const:16 events=uniform:0..g
entry osem [g] [subsets] [n] (g: i32) (events: [subsets][n](point, point)) : [g*g*g]f32 =
  loop image = replicate (g * g * g) 1.0 for subset in events do
    let paths = map (path g) subset
    let ratios =
      map
        (\line ->
          let sum = reduceSeq (\sum (voxel, part) -> if voxel >= 0 then sum + part * image[voxel] else sum) 0 line
          in map (\(voxel, part) -> (voxel, if sum > 0 then part / sum else 0)) line)
        paths
    let (voxels, parts) = unzip (join ratios)
    in map2 (\x c -> if c > 0 then x * c else x) image (hist (+) 0 (g * g * g) voxels parts)
