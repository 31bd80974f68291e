-- Functions that are defined in the language itself. A definition of a program hides one with the same name. `lowest`,
-- `highest` and numbers take their types from the context, so these work for every type of number.

-- The sum of all elements; 0 without elements.
def sum xs = reduce (+) 0 xs

-- The product of all elements; 1 without elements.
def product xs = reduce (*) 1 xs

-- The greatest element; the type's lowest value without elements.
def maximum xs = reduce max lowest xs

-- The least element; the type's highest value without elements.
def minimum xs = reduce min highest xs

-- Whether `p` holds for an element.
def any p xs = reduce (||) false (map p xs)

-- Whether `p` holds for all elements.
def all p xs = reduce (&&) true (map p xs)

-- The number of elements for which `p` holds.
def count p xs = reduce (+) 0 (map (\x -> if p x then 1 else 0) xs)

-- The index of the first element for which `p` holds; the length if there is none.
def find p xs = reduce min (length xs) (map2 (\x i -> if p x then i else length xs) xs (indices xs))

-- The index of the least element, the first of equal ones; the length without elements. NaN, which alone differs from
-- itself, counts as the least.
def argmin xs =
  let value = \x -> if x != x then lowest else x in
  let before = \(a, i) (b, j) -> if a < b || (a == b && i < j) then (a, i) else (b, j) in
  (reduce before (highest, length xs) (zip (map value xs) (indices xs))).1

-- The index of the greatest element, the first of equal ones; the length without elements. NaN counts as the greatest.
def argmax xs =
  let value = \x -> if x != x then highest else x in
  let before = \(a, i) (b, j) -> if a > b || (a == b && i < j) then (a, i) else (b, j) in
  (reduce before (lowest, length xs) (zip (map value xs) (indices xs))).1

-- How many elements satisfy `p`, and all elements: first those that do, then the others, both in their order.
def partition p xs =
  let (counts, sorted) = counting_sort 2 (map (\x -> if p x then 0 else 1) xs) xs in
  (counts[0], sorted)

-- Another name of `partition`: the elements that satisfy `p` are the first ones, as many as the first component says.
def filter p xs = partition p xs

-- The elements in the order of the numbers that `key` gives; equal ones keep their order. The place of one of few elements
-- is how many elements stand before it. Others are sorted by one counting sort for each byte in which the keys differ, from
-- the least.
def sort_by_key key xs =
  let keys = map (\x -> order_key (key x)) xs
  let is = indices keys
  let before = \i k j l -> l < k || (l == k && j < i)
  let place = \i k -> reduce (+) 0 (map2 (\j l -> if before i k j l then 1 else 0) is keys)
  let both = \(a, b) (c, d) -> (a | c, b & d)
  let ones = highest
  let (some, every) = reduce both (0, ones) (map (\k -> (k, k)) keys)
  let byte = \bits from -> (bits >> from) & 255 in
  in_order
    keys
    xs
    (if few xs
    then scatter xs (map2 place is keys) xs
    else (loop (ys, from) = (xs, 0) for i < popcount ones / 8 do
        let ys =
          if byte (some & ~every) from == 0
          then ys
          else (counting_sort 256 (map (\y -> byte (order_key (key y)) from) ys) ys).1 in
        (ys, from + 8)).0)

-- The numbers in ascending order.
def sort xs = sorted xs (sort_by_key (\x -> x) xs)

-- The indices of the elements in ascending order, the lower index first of equal ones.
def argsort xs = (unzip (sort_by_key (\(x, _) -> x) (zip xs (indices xs)))).1

-- The elements in an order that `lte` decides: whether its first argument may stand before the second. Equal ones keep
-- their order. Each step merges neighbouring runs of `width` elements; an element of a merged run is found by a search
-- for how many of those before it are of the first run.
def sort_by lte xs =
  let n = length xs in
  loop ys = xs for step < 32 - clz ((max n 1 - 1) : i32) do
    let width = 1 << step in
    generate n (\i ->
      let from = i >> step >> 1 << 1 << step
      let middle = from + min width (n - from)
      let end = middle + min width (n - middle)
      let before = i - from
      let least = max 0 (before - (end - middle))
      let (a, _) =
        loop (low, high) = (least, min before (middle - from)) while low < high do
          let k = (low + high) / 2 in
          if lte (ys[from + k]) (ys[middle + before - 1 - k])
          then (k + 1, high)
          else (low, k)
      let (left, right) = (from + a, middle + before - a) in
      if left < middle && (right >= end || lte (ys[left]) (ys[right]))
      then ys[left]
      else ys[right])

-- As `scan op z xs`, begun again at each element whose flag is true.
def segmented_scan op z flags xs =
  let join_flagged = \(f, x) (g, y) -> (f || g, if g then y else op x y) in
  (unzip (scan join_flagged (false, z) (zip flags xs))).1

-- How many segments there are, and their elements combined, in their order; `z` behind them. A segment begins at
-- element 0 and at each element whose flag is true.
def segmented_reduce op z flags xs =
  let n = length xs
  let starts = map2 (\f i -> f || i == 0) flags (indices flags)
  let ends = map2 (\f i -> f || i == n - 1) (rotate 1 flags) (indices flags)
  let number = scan (+) 0 (map (\s -> if s then 1 else 0) starts)
  let count = if n == 0 then 0 else number[n - 1]
  let places = map2 (\e k -> if e then k - 1 else -1) ends number in
  (count, scatter (replicate n z) places (segmented_scan op z starts xs))

-- How many runs of equal keys there are, the key of each, and its elements combined, in their order; `lowest` and `z`
-- behind them.
def reduce_by_key op z keys xs =
  let starts = map2 (\k i -> i == 0 || k != keys[max 0 (i - 1)]) keys (indices keys)
  let (count, values) = segmented_reduce op z starts xs in
  (count, (segmented_reduce max lowest starts keys).1, values)

-- From the left: `f (... (f (f z x0) x1) ...)`, one element after the other.
def foldl f z xs = loop (acc = z) for x in xs do f acc x

-- From the right: `f x0 (f x1 (... z))`, one element after the other.
def foldr f z xs = loop (acc = z) for x in xs[::-1] do f x acc

-- The indices of an array.
def indices xs = iota (length xs)

-- The numbers from `a` to `b - 1`.
def interval a b = map (+ a) (iota (b - a))

-- The numbers from `a` to `b`.
def closed_interval a b = interval a (b + 1)

-- The first element.
def head xs = xs[0]

-- The last element.
def last xs = xs[length xs - 1]

-- All elements but the last.
def init xs = xs[:length xs - 1]

-- All elements but the first.
def tail xs = xs[1:]

-- The rows one after the other.
def flatten xss = join xss

-- Rows one after the other as an array of rows; the context says how long they are.
def unflatten [m] xs = split m xs

-- `f` of every index.
def tabulate n f = generate n f

-- `f` of every pair of indices.
def tabulate_2d n m f = generate n (\i -> generate m (\j -> f i j))

-- `f` of every three indices.
def tabulate_3d n m k f = generate n (\i -> generate m (\j -> generate k (\l -> f i j l)))

-- `f` of every element of every row.
def map_2d f xss = map (map f) xss

-- `f` of every element of three dimensions.
def map_3d f xsss = map (map (map f)) xsss

-- `f` of the elements of two arrays of rows.
def map2_2d f xss yss = map2 (map2 f) xss yss

-- More elements around a matrix, `l` before and `r` behind, as `pad` in both dimensions.
def pad_2d l r how xss = pad l r how (map (pad l r how) xss)

-- More elements around three dimensions.
def pad_3d l r how xsss = pad l r how (map (pad_2d l r how) xsss)

-- The windows of `w` by `w` elements of a matrix, at a distance of `s` in both dimensions.
def slide_2d w s xss = map (map (slide w s) >-> transpose) (slide w s xss)

-- The windows of three dimensions.
def slide_3d w s xsss = map (map (slide_2d w s) >-> transpose >-> map transpose) (slide w s xsss)

-- Whether all elements are true.
def and xs = reduce (&&) true xs

-- Whether an element is true.
def or xs = reduce (||) false xs

-- Another name of `histogram`.
def hist op z m is vs = histogram op z m is vs

-- `dest`, with the values of index `i` combined with element `i`: `op` associative and commutative with neutral
-- element `z`.
def reduce_by_index dest op z is vs = map2 op dest (histogram op z (length dest) is vs)

-- `m` elements: `vs[j]` at `is[j]`, and `z` elsewhere.
def spread m z is vs = scatter (replicate m z) is vs

-- The value itself. What is copied is decided by patsat.
def copy x = x

-- `e`. The condition is not checked.
def assert (_: bool) e = e

-- `x >> k` with zeros in place of copies of the sign: the first place is shifted alone, and its sign is cleared.
def lshr x k = if k == 0 then x else ((x >> 1) & highest) >> (k - 1)

-- `f` with its arguments in the other order.
def flip f x y = f y x

-- `f`, which takes a pair, of two arguments.
def curry f x y = f (x, y)

-- `f`, which takes two arguments, of a pair.
def uncurry f (x, y) = f x y
