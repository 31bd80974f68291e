//! Example programs. Each pattern appears in at least one of them, and all of them pass the checker.

use crate::diag::Source;
use crate::lang::{check, check_entry, check_entry_general};

/// Programs of a realistic size.
pub const PROGRAMS: &[&str] = &[
    // Examples from the language manual.
    "-- Sum of absolute values (BLAS asum).
entry asum [n] (xs: [n]f32) : f32 =
  xs |> map abs |> reduce (+) 0

-- y = alpha*A*x + beta*y
def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)
entry gemv [n][m] (A: [n][m]f32) (x: [m]f32) (y: [n]f32) (alpha: f32) (beta: f32) : [n]f32 =
  map2 (\\row yi -> alpha * dot row x + beta * yi) A y
",
    "def dot xs ys = reduce (+) 0 (map2 (*) xs ys)
entry gemm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) (C: [n][m]f32) (alpha: f32) (beta: f32) : [n][m]f32 =
  map2 (\\a c -> map2 (\\b x -> alpha * dot a b + beta * x) (transpose B) c) A C
",
    "entry nbody [n] (xs: [n]f32) (ms: [n]f32) : [n]f32 =
  map (\\x -> reduce (+) 0 (map2 (\\y m -> let d = y - x in m * d * rsqrt (d * d + 0.01)) xs ms)) xs
",
    "entry parts [n][m] (xs: [2*n]f32) (A: [n][m]f32) (i: i32) : ([n]f32, [2][2]f32, [n][m]f32, [m]f32) =
  let w = [0.25, 0.5, xs[0]] -- weights
  let b = [[1, 2], [sum w, argmax w |> f32.i32]]
  let ys = xs with [0] <- 1 with [1:2 * n - 1] = xs[2:]
  in
  ( map2 (+) ys[::2] xs[1::2]
  , b
  , A with [i, :m] <- (loop (r = A[0]) for a in A[1:, :] do map2 (+) r a)
  , A[::-1, :][i]
  )
",
    "-- trailing things
entry shapes [n][m] (xs: [n]f32) (xss: [n][m]f32) (is: [m]i32) (bs: [n]bool) -- here
  : ([n]f32, [m]i32, [n*m]f32, [m][n]f32, [n]f32, [m]f32, [n]f32, [2*n]f32, [n]f32, [n]f32) =
  let (a, b) = unzip (zip xs (map f32.i32 (iota n)))
  let c = replicate m 1 -- ones
  let (d, e, f) = unzip3 (zip3 xs xs bs)
  in
  ( map2 (+) a b
  , map2 (+) c is
  , join xss
  , transpose xss
  , reverse d
  , gather xs is
  , scatter xs is (replicate m 0.5)
  , concat xs xs
  , rotate 1 e
  , map3 (\\x y z -> if z then x else y) xs xs f
  )
",
    "def at [n] (xs: [n]f32) (i: i32) : f32 = if i >= 0 then xs[i] else 0
entry unnamed [n] (xs: [n]f32) : ([n]f32, [1]bool, f32) =
  let ys = loop xs = xs for _ < 3 do loop xs = xs for _ < n do map (* 2) xs
  in (ys, [n <-3 | 1], at ys (-1))
",
    "def zeros (w: i64) (h: i32) : [][]f32 = replicate (2 * w) (replicate (h + 1) 0)
def cut [n] (k: i64) (xs: [n]f32) = let half = k / 2 in (xs[half:], take half xs, k + 1)
entry known [n] (xs: [2*n]f32) : ([2*n][n]f32, [n]f32, i64) =
  let (front, back, k) = cut (2 * n) xs
  in (zeros n (n - 1), map2 (+) front back, k)

def three [n] (k: i64) (xs: [n]f32) : [3]f32 = xs[min k 5:min k 5 + 3]
entry computed [n] (i: i64) (xs: [n]f32) : ([3]f32, [3]f32, [3]f32) =
  (three i xs, three n xs, xs[n % 4:n % 4 + 3])
",
    "entry stencil [n] (xs: [n]f32) : [n]f32 =
  xs |> pad 1 1 clamp |> slide 3 1 |> map (\\w -> (w[0] + w[1] + w[2]) / 3)
entry stencil2 [n] (xs: [n]f32) : [n]f32 = pad 1 1 0 xs |> slide 3 1 |> map (reduce (+) 0)
entry wrapped [n] (xs: [n]f32) : [n+2]f32 = pad 0 2 wrap xs
entry mirrored [n] (xs: [n]f32) : [n + 2]f32 = pad 2 0 mirror xs
entry blur [n][m] (a: [n][m]f32) : [n][m]f32 =
  a |> map (pad 1 1 clamp) |> pad 1 1 clamp |> map (slide 3 1) |> slide 3 1 |> map transpose
    |> map (map (\\w -> reduce max f32.lowest (join w)))
",
    "entry parts [n] (xs: [4*n]f32) : [4]f32 = reducePart (+) 0 4 xs
entry sums [n] (xs: [n]i64) : [n]i64 = scan (+) 0 xs
entry offsets [n] (xs: [n]i64) : [n]i64 = scan_exclusive (+) 0 xs
entry hist [n] (is: [n]i32) : [16]i32 = histogram (+) 0 16 is (map (\\_ -> 1) is)
entry best [n] (xs: [n]f32) : (f32, i32) =
  reduce_comm (\\(a, i) (b, j) -> if a > b then (a, i) else (b, j)) (f32.lowest, -1) (zip xs (iota n))
entry gen [n] : [n]f32 = generate n (\\i -> f32.i32 i ** 2)
entry ends [n] (xs: [n+4]f32) : ([4]f32, [n]f32) = (take 4 xs, drop 4 xs)
entry halves [n] (xs: [64*n]f32) : [n]f32 =
  iterate 6 (\\ys -> split 2 ys |> map (reduce (+) 0)) xs
entry steps [n] (xs: [n]f32) (k: i32) : [n]f32 =
  loop (acc = xs) for i < k do map (* 2) acc
entry newton (x: f32) : f32 = loop (y = 1) while abs (y * y - x) > 1e-6f32 do (y + x / y) / 2
entry pairs (x: i32) : (i32, i32) = loop (a, b) = (0, 1) for i < x do (b, a + b)
entry relaxed [n] (xs: [n]f32) : [n]f32 = iterate 10 (\\ys -> map2 (+) ys xs) xs
entry bag [n] (xs: [n]f32) : f32 = reduce (+) 0 (reorder xs)
",
    "entry scalars (x: f32) (y: f32) (i: i32) (b: bool) : (f32, i32, bool) =
  let r = min x y + max x y - sqrt x * rsqrt y / exp x + log y ** pow x 2
  let s = sin x + cos x + tan x + atan x + atan2 x y + floor x + ceil x + round x
  let t = fma x y r + sign x + clamp x 0 1 + select b x y
  let u = -i % 3 + i32.f32 x + abs (i - 0x1f)
  in (r + s + t, u, !b && x <= y || x != y && i >= 3 && i == 4 || x < y)
entry bits [n] (xs: [n]u32) (i: i32) (b: bool) : ([n]u32, i32, bool) =
  let ys = map (>> 3) xs |> map (0x80000000 |) |> map2 (^) xs |> map (& 0xff) |> map (~0 ^)
  let j = i & 7 << 2 | ~i ^ i >> 1 + 2
  let k = popcount i + clz (u8.i32 i) + ctz i + mulhi i 3 + i32.popc i + u64.clz 9
  let ys = map2 (^) ys (map (i32.u32 >-> order_key >-> (^ f32.order_key 1)) xs)
  in (map complement ys, j + k + i32.not i, b & not b | b ^ true)
entry functions (x: f32) (y: f64) : (f32, f64, bool) =
  let a = tanh x + asin x + acos x + sinh x + cosh x + asinh x + acosh x + atanh x
  let b = exp2 x + exp10 x + expm1 x + log2 x + log10 x + log1p x + cbrt x + hypot x a
  let c = erf y + erfc y + trunc y + fmod y 3 + copysign y (-1) + f64.tanh y + f64.fmod y f64.pi
  in (a + b, c, isnan x || isinf y || isnan f32.nan)
entry names [n] (xs: [n]f32) : f32 =
  let inc = (+ 1)
  let half x = x / 2
  let both = inc >-> half
  let other = inc <-< half
  in reduce (+) 0 (map (both >-> other >-> (2 -)) xs) / f32.i64 (n : i64)
def square x = x * x
def apply f x = f x
def norm = map square >-> reduce (+) 0 >-> sqrt
entry higher [n][m] (xss: [n][m]f32) : [n]f32 = map norm xss |> map (apply square)
entry sums [n][m] (xss: [n][m]f32) : [n]f32 = map (reduce (+) 0) xss
entry at [n][m] (xss: [n][m]f32) (t: (i32, (f32, u8))) : f32 = xss[0, t.0] + xss[1][0] + t.1.0
",
    "entry dotWrg [n] (xs: [n]f32) (ys: [n]f32) : [n/1024]f32 =
  zip xs ys |> split 1024
    |> mapWrg 0 (\\chunk ->
         chunk |> split 16
           |> toLocal (mapLcl 0 (reduceSeq (\\acc (x, y) -> acc + x * y) 0))
           |> reduceUnroll (+) 0)
entry vec [n] (xs: [4*n]f32) : [4*n]f32 =
  xs |> asVector 4 |> mapGlb 0 (vectorize 4 (* 2)) |> asScalar
entry vsum [n] (xs: [4*n]f32) : f32 =
  xs |> asVector 4 |> reduceSeq (vectorize 4 (+)) 0 |> (\\v -> reduceSeq (+) 0 (asScalar (replicate 1 v)))
entry vsum2 [n] (z: f32) (xs: [4*n]f32) (ys: [4*n]f32) : f32 =
  zip xs ys |> asVector 4 |> reduceSeq (\\acc (x, y) -> acc + x * y) z |> (\\v -> reduceSeq (+) 0 (asScalar (replicate 1 v)))
entry lanes [n] (xs: [32*n]f32) : [32*n]f32 =
  xs |> split 32 |> split 1 |> mapWrg 0 (mapWarp (mapLane (+ 1)) >-> id) |> join |> join
",
    "def nearer (d: f32, i: i32) (e: f32, j: i32) = if e < d then (e, j) else (d, i)
entry typed [n] (x: f32, (ys: [n]f32, _: f32)) ((i: i32)) : [n]f32 =
  map (\\y -> (nearer (x, i) (y, 1)).0) ys
",
    "let g = 9.81
type vec = {x: f32, y: f32}
type body = {pos: vec, mass: f32}
type mat [n][m] = [n][m]f32
let tau : f32 = 2 * f32.pi
let scale (s: f32) (v: vec) : vec = {x = s * v.x, y = s * v.y}
def add ({x, y}: vec) ({x = a, y = b}: vec) : vec = {y = y + b, x = x + a}
entry centre [n] (bodies: [n]body) : vec =
  let total = reduce add {x = 0, y = 0} (map (\\b : vec -> scale b.mass b.pos) bodies)
  in total with x = total.x / tau
entry fall [n] (t: f32) (bodies: [n]body) : [n]body =
  map (\\b -> b with pos.y = b.pos.y - g * t * t / 2) bodies
entry product [n][k] (A: mat [n][k]) (B: mat [k][n]) : mat [n][n] =
  map (\\a -> map (\\b : f32 -> reduce (+) 0 (map2 (f32.*) a b)) (transpose B)) A
entry implicit (xs: []f32) (ys: [][]f32) : []f32 = xs |> map (\\x -> x `max` ys[0, 0])
def both 'a 'b (f: a -> b) (x: a, y: a) : (b, b) = (f x, f y)
def compose [n] 'a (op: a -> (a -> a)) (ne: a) (xs: [n]a) : a = reduce op ne xs
entry pair [n] (x: f32) (xs: [n]f32) = (both sqrt (x, x), compose (+) 0 xs)
entry one (p: {only: f32}) : {only: f32} = {only = p.only + 1}
entry spread [h][w] (a: [2*h][w - 1]f32) : [2*h][w - 1]f32 = map (map sqrt) a
entry parts [n] (xs: [n]((f32, i32), {x: f32, y: f32})) : ([n]f32, [n]f32, f32) =
  let ys = map (.0.0) xs -- sections
  in (ys, xs |> map ((.1) >-> (.x)), (.1.y) xs[0] + (.0) (xs[1].0))
entry local [n][m] (xs: [n]f32) (a: [n][m]f32) : ([n]f32, [m][n]f32, [2]f32, f32) =
  let turned [k][l] 't (x: [k][l]t) : [l][k]t = transpose x
  let first [k] 't [l] (k: i64) (x: [l]t) : [k]t = take k x -- of both
  let both 'a 'b (f: a -> b) (x: a, y: a) : (b, b) = (f x, f y)
  in (turned (turned [xs]) |> join, turned a, first 2 xs, (both sqrt (xs[0], xs[1])).0)
entry again (k: i32) (x: f32) (y: f32) = loop (x, y) for i < k do (y, x + f32.i32 i)
entry between (k: i32) : i32 =
  (loop (low = 0, high: i32 = k, (a, b) = (1, 1)) while low < high do (low + 1, high - 1, (b, a))).0
entry spiral (k: i32) =
  loop {x, y = b} = {y = 0f32, x = 1f32} for i < k do {x = x - b, y = x + b}
",
    "entry updates [n] (xs: [n][n]i32) (k: i32) : [n][n]i32 =
  let xs[0, 1] = 5
  let (a, b) = (xs[0], 1)
  let a[1:3] = replicate 2 k in
  loop xs for i < n do
    let xs[i] = let a[i] = b in a
    in xs with [:, 0] = map (// 2) a
entry operators [n] (xs: [n]i32) (bs: [n]bool) : [2*n]i32 =
  let ys = (i32.// 2) <| xs[0] %% 3 + 1 - xs[1] // 2
  let f = map (+ ys) <-< map (3 >>>) >-> map1 (>>> 3)
  let g = (++) (take 0 xs) >-> (take 0 xs ++) >-> (++ take 0 xs)
  in g <| f <| map2 (\\x b -> if b then x else 0) xs (map (!) bs) ++ map (~) xs :> [2*n]i32
entry casts [k] [n] (k: i32) (xs: [n]f32) : ([k]f32, [n + 1]i64, []f32) =
  (take (i64.i32 k) (replicate (i64.i32 (2 * k)) xs[0]), exscan (+) 0 (iota (i32.i64 n + 1)),
   xs[i64.i32 (k - 1):i64.u32 (u32.i64 (n - 1))])
entry sized (k: i64) (n: i32) (xs: [n]f32) (q: i32) : ([k]f32, [n][q - 1]i32) =
  let firsts (j: i64) (ys: []f32) : [j]f32 = take j ys -- its own size
  in (firsts k (xs ++ replicate k 0), replicate n (iota (q - 1)))
entry ranges [n] (xs: [n]i32) : ([n]i64, [2]i32, i32) =
  let sum = loop s = 0 for i in 1...n - 1 do s + xs[i]
  in (0..<n, map (xs[0] +) (3 ..< 2 + 3), sum)
entry lows [n] (xs: [n][8]f32) : [n][8]f32 =
  mapGlb 1 (mapGlb 0 (mapSeq (\\x -> x + 1) >-> toGlobal (mapUnroll id)) >-> id) (map (split 8) xs) |> map join
entry strides [n] (xs: [4*n]f32) : [4*n]f32 = xs |> reorderStride 4 |> toPrivate (mapSeq (+ 1)) |> scanSeq (+) 0
entry its [n] (xs: [8*n]f32) : [n]f32 = iterateSeq 3 (split 2 >-> mapSeq (reduceSeq (+) 0)) xs
",
];

#[test]
fn programs_check() {
    for program in PROGRAMS {
        let (entries, diagnostics) = check(&Source::new("p.pat", *program));
        assert!(diagnostics.is_empty(), "{program}\n{diagnostics:#?}");
        assert_eq!(entries.len(), program.matches("entry ").count(), "{program}");
    }
}

#[test]
fn records_are_tuples_in_the_order_of_names() {
    let text = "type p = {y: f32, x: i32, at: (f32, {z: u8})}
        entry f [n] (ps: [n]p) ({only = q}: {only: [n]f32}) : [n]{b: f32, a: i32} =
          map2 (\\{y, x} s : {a: i32, b: f32} -> {b = y + s, a = x}) ps q";
    let entry = check_entry(&Source::new("p.pat", text), None).expect("the program is well-typed");
    let types: Vec<_> = entry.params.iter().map(|p| p.ty.to_string()).collect();
    assert_eq!(types, ["[n]((f32, u8), i32, f32)", "[n]f32"]);
    assert_eq!(entry.body.ty.to_string(), "[n](i32, f32)");
    assert_eq!(entry.params[0].labels, ["at.0", "at.1.z", "x", "y"]);
    assert_eq!(entry.params[1].labels, ["only"]);
    assert_eq!(entry.params[0].component("at.1.z"), Some(1));
    assert_eq!(entry.params[0].component("3"), Some(3));
}

#[test]
fn lengths_without_names_are_distinct() {
    let text =
        "entry f (n: f32) (xs: []f32) (ys: [][2]f32) : []f32 = map (* n) (map (\\y -> y[0]) ys)";
    let source = Source::new("p.pat", text);
    let entry = check_entry(&source, None).expect("the program is well-typed");
    let types: Vec<_> = entry.params.iter().map(|p| p.ty.to_string()).collect();
    // The name `n` is taken.
    assert_eq!(types, ["f32", "[m]f32", "[k][2]f32"]);
    assert_eq!(entry.body.ty.to_string(), "[k]f32");
    let twice = "entry f (xs: []f32) (ys: []f32) : []f32 = map2 (+) xs ys";
    assert!(check_entry(&Source::new("p.pat", twice), None).is_err());
}

#[test]
fn what_has_no_effect_is_only_a_warning() {
    let text = "entry f [n] (xs: *[n]f32) : *[n]f32 = #[unroll] map sqrt xs";
    let (entries, found) = check(&Source::new("p.pat", text));
    assert_eq!((entries.len(), found.len()), (1, 3));
}

#[test]
fn general_sizes_of_a_square_product() {
    let source = Source::new(
        "p.pat",
        "entry mm [n] (A: [n][n]f32) (B: [n][n]f32) : [n][n]f32 =
           map (\\a -> map (\\b -> reduce (+) 0 (map2 (*) a b)) (transpose B)) A",
    );
    let (entry, sizes) =
        check_entry_general(&source, None, true).expect("the program is well-typed");
    let types: Vec<_> = entry.params.iter().map(|p| p.ty.to_string()).collect();
    assert_eq!(types, ["[n][n_1]f32", "[n_1][n_2]f32"]);
    assert_eq!(entry.body.ty.to_string(), "[n][n_2]f32");
    assert_eq!(entry.sizes, ["n", "n_1", "n_2"]);
    let named = Source::new(
        "p.pat",
        "type mat [r][c] = [r][c]f32
         entry mm [n] (A: mat [n][n]) (B: mat [n][n]) : mat [n][n] =
           map (\\a -> map (\\b -> reduce (+) 0 (map2 (*) a b)) (transpose B)) A",
    );
    let (same, _) = check_entry_general(&named, None, true).expect("the program is well-typed");
    assert_eq!(same.params.iter().map(|p| p.ty.to_string()).collect::<Vec<_>>(), types);
    assert!(sizes.iter().all(|(_, s)| s.to_string() == "n"));
    let declared = check_entry(&source, None).expect("the program is well-typed");
    assert_eq!(declared.body.ty.to_string(), "[n][n]f32");
}

#[test]
fn general_sizes_of_numbers() {
    let general = |text: &str| {
        let (entry, sizes) =
            check_entry_general(&Source::new("p.pat", text), None, true).expect("a program");
        let types: Vec<_> = entry.params.iter().map(|p| p.ty.to_string()).collect();
        let sizes: Vec<_> = sizes.iter().map(|(name, size)| format!("{name}={size}")).collect();
        (types.join(" "), sizes.join(" "))
    };
    let found = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let product = "def row (r: [64]f32) (B: [64][64]f32) : [64]f32 =
          map (\\b -> reduce (+) 0 (map2 (*) r b)) (transpose B)
        entry mm [n64] (A: [n64][64]f32) (B: [64][64]f32) : [n64][64]f32 = map (\\r -> row r B) A";
    let types = "[n64][n64_1]f32 [n64_1][n64_2]f32";
    assert_eq!(general(product), found(types, "n64=n64 n64_1=64 n64_2=64"));
    // Short arrays are unrolled.
    let short = "entry f [n] (xs: [n][3]f32) : [n]f32 = map (reduce (+) 0) xs";
    assert_eq!(general(short), found("[n][3]f32", "n=n"));
    // The body ties one length to a number.
    let table = "entry f (xs: [20][30]f32) : [20][30]f32 = map2 (\\r i -> map (* i) r) xs (map f32.i32 (iota 20))";
    assert_eq!(general(table), found("[20][n30]f32", "n30=30"));
}

#[test]
fn uses_in_different_loops_have_axes_of_their_own() {
    let general = |text: &str| {
        let (entry, sizes) =
            check_entry_general(&Source::new("p.pat", text), None, true).expect("a program");
        assert!(
            sizes.iter().all(|(_, s)| s.to_string() == "n" || s.to_string() == "k"),
            "{sizes:?}"
        );
        (entry.sizes.join(" "), entry.body.ty.to_string())
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    // All pairs, and A*A^T, whose rows all have the same length.
    let pairs = "entry f [n] (xs: [n]f32) = map (\\x -> reduce (+) 0 (map (* x) xs)) xs";
    assert_eq!(general(pairs), pair("n n_1", "[n]f32"));
    let product = "entry f [n][k] (A: [n][k]f32) : [n][n]f32 =
        map (\\a -> map (\\b -> reduce (+) 0 (map2 (*) a b)) A) A";
    assert_eq!(general(product), pair("n k n_1", "[n][n_1]f32"));
    // A single loop, or lengths that must be equal.
    let scaled = "entry f [n] (xs: [n]f32) = let m = reduce max 0 xs in map (/ m) xs";
    assert_eq!(general(scaled), pair("n", "[n]f32"));
    let rows = "entry f [n] (A: [n][n]f32) (x: [n]f32) = map (\\a -> map2 (*) a x) A";
    assert_eq!(general(rows).0, "n n_1");
    let once = "entry f [n] (xs: [n]f32) (is: [n]i32) = map (\\i -> xs[i]) is";
    assert_eq!(general(once), pair("n n_1", "[n_1]f32"));
}

#[test]
fn annotations_do_not_tie_axes_together() {
    for product in [
        "let mm = \\(x: [n][n]f32) (y: [n][n]f32) -> map (\\r -> map (dot r) (transpose y)) x in mm (mm a b) c",
        "mm (mm a b) c",
        "let ab: [n][n]f32 = mm a b in mm ab c",
        "mm (mm a b : [n][n]f32) c",
    ] {
        let text = format!(
            "def dot [k] (u: [k]f32) (v: [k]f32) : f32 = reduce (+) 0 (map2 (*) u v)
             def mm [k] (x: [k][k]f32) (y: [k][k]f32) : [k][k]f32 =
                 map (\\r -> map (dot r) (transpose y)) x
             entry chain [n] (a: [n][n]f32) (b: [n][n]f32) (c: [n][n]f32) : [n][n]f32 = {product}"
        );
        let (entry, sizes) =
            check_entry_general(&Source::new("p.pat", &text), None, true).expect("a program");
        let types: Vec<_> = entry.params.iter().map(|p| p.ty.to_string()).collect();
        assert_eq!(types, ["[n][n_1]f32", "[n_1][n_2]f32", "[n_2][n_3]f32"], "{product}");
        assert!(sizes.iter().all(|(_, s)| s.to_string() == "n"));
    }
    // Lengths that are computed from a name still are.
    let text = "entry f [n] (x: [n]f32) (y: [n]f32) : [n]f32 =
        let z: [n + n]f32 = concat x y in map2 (+) (take n z) y";
    let (entry, _) =
        check_entry_general(&Source::new("p.pat", text), None, true).expect("a program");
    assert_eq!(entry.body.ty.to_string(), "[n]f32");
}

#[test]
fn every_program_has_a_general_form() {
    for program in PROGRAMS {
        let source = Source::new("p.pat", *program);
        for entry in check(&source).0 {
            let (general, sizes) = check_entry_general(&source, Some(&entry.name), true)
                .expect("the program is well-typed");
            assert_eq!(general.params.len(), entry.params.len());
            assert_eq!(general.sizes.len(), sizes.len());
        }
    }
}

#[test]
fn iterate_changes_lengths() {
    let text =
        "entry f [n] (xs: [n]f32) : [n/8]f32 = iterate 3 (split 2 >-> map (reduce (+) 0)) xs";
    let entry = check_entry(&Source::new("p.pat", text), None).expect("the program is well-typed");
    assert_eq!(entry.body.ty.to_string(), "[n/8]f32");
    let demands: Vec<_> = entry.divides.iter().map(|(a, b, _)| format!("{b} | {a}")).collect();
    assert_eq!(demands, ["8 | n"]);
}

#[test]
fn the_core_is_saturated_and_defaulted() {
    use crate::lang::typed::{ExprKind, Literal, Prim, ScalarOp};
    use crate::lang::types::{ScalarType, Type};
    let core = |text: &str| {
        check_entry(&Source::new("p.pat", text), None).expect("the program is well-typed").body
    };
    let ExprKind::Prim { prim: Prim::Reduce, funs, args, .. } =
        core("entry f [n] (xs: [n]f32) = xs |> map abs |> reduce (+) 0").kind
    else {
        panic!("not a reduction");
    };
    assert_eq!(funs[0].params.len(), 2);
    assert!(matches!(funs[0].body.kind, ExprKind::Scalar(ScalarOp::Add, _)));
    assert_eq!(args[0].kind, ExprKind::Lit(Literal::Float(0.0)));
    assert!(matches!(args[1].kind, ExprKind::Prim { prim: Prim::Map, .. }));
    assert_eq!(core("entry f = 1").ty, Type::Scalar(ScalarType::I32));
    assert_eq!(core("entry f = 1.0").ty, Type::Scalar(ScalarType::F32));
    assert_eq!(core("entry f = -128i8").kind, ExprKind::Lit(Literal::Int(-128)));
    assert_eq!(core("entry f [n] : i64 = n + 1").ty, Type::Scalar(ScalarType::I64));
    // A captured argument is computed once, outside the function that captures it.
    let captured = core(
        "def dot xs ys = reduce (+) 0 (map2 (*) xs ys)
         entry f [n][m] (v: [m]f32) (xss: [n][m]f32) = map (dot (map sqrt v)) xss",
    );
    assert!(matches!(captured.kind, ExprKind::Let(..)));
}
