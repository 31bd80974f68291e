//! Names that other languages have for what is written in another way here.

/// Names, and what to write instead.
const FOREIGN: &[(&[&str], &str)] = &[
    (
        &["where"],
        "a choice for each element is `map (\\x -> if x > 0 then x else 0) xs`; the elements that satisfy `p` are the first `k` of `ys` in `let (k, ys) = filter p xs`",
    ),
    (
        &["compact", "nonzero"],
        "the elements that satisfy `p` are the first `k` of `ys` in `let (k, ys) = filter p xs`",
    ),
    (&["fold", "foldl'", "reduce_left", "accumulate"], "a fold from the left is `foldl f z xs`"),
    (
        &["scanl", "scanl1", "cumsum", "cumulative_sum", "prefix_sum"],
        "inclusive prefixes are `scan (+) 0 xs`",
    ),
    (
        &["zipWith", "zip_with", "map_2"],
        "a function of the elements of two arrays is `map2 f xs ys`",
    ),
    (
        &["mapi", "imap", "map_with_index", "enumerate"],
        "with the index of each element: `map2 f (iota n) xs`",
    ),
    (
        &["range", "arange", "seq", "upto"],
        "the numbers from 0 are `iota n`, those from `a` to `b - 1` are `a..<b`",
    ),
    (
        &["zeros", "zeroes", "ones", "fill", "full", "constant"],
        "an array of equal elements is `replicate n x`",
    ),
    (
        &["len", "size", "shape", "count_elements"],
        "a length is a size `[n]` of the type, and `n` its value; or write `length xs`",
    ),
    (
        &["reshape", "view", "unflatten_2d"],
        "write `split k xs` for rows of `k`, `join xss` for all elements in a row",
    ),
    (
        &["inf", "infinity", "INFINITY", "nan", "NaN", "pi", "PI", "M_PI"],
        "constants have the name of their type in front: `f32.inf`, `f32.nan`, `f32.pi`",
    ),
    (&["mean", "average", "avg"], "a mean is `sum xs / f32.i32 (length xs)`"),
    (
        &["max_value", "min_value", "maxBound", "minBound", "inf_neg"],
        "the ends of a type are `i32.highest` and `i32.lowest`",
    ),
    (&["epsilon", "eps"], "write the number: `1.1920929e-7f32`, `2.220446049250313e-16f64`"),
    (&["ln"], "the natural logarithm is `log`"),
    (&["fabs", "absolute"], "the absolute value is `abs`"),
    (&["powf", "power", "powi"], "a power is `x ** y`"),
    (&["mod", "rem", "modulo"], "the remainder is `x % y`"),
    (&["div", "quot"], "the quotient is `x / y`; integers are truncated towards zero"),
    (&["ceiling"], "rounding up is `ceil`"),
    (&["fmin", "fmax"], "write `min` and `max`"),
    (
        &["float", "double", "int", "toFloat", "fromIntegral", "realToFrac"],
        "a conversion names both types: `f32.i32 x` is `x` as `f32`",
    ),
    (
        &[
            "map_intra",
            "map_seq",
            "map_par",
            "parallel_map",
            "pmap",
            "map_stream",
            "stream_map",
            "map_stream_per",
        ],
        "patsat decides how a `map` runs; write `map f xs`",
    ),
    (
        &["reduce_stream", "reduce_stream_per", "stream_red", "redomap"],
        "write `reduce op z (map f xs)`; patsat fuses them",
    ),
    (
        &["sorted", "qsort", "quicksort", "merge_sort", "insertion_sort", "bubble_sort"],
        "numbers are sorted by `sort xs`, and elements in the order of `lte` by `sort_by lte xs`",
    ),
    (
        &["radix_sort", "radix_sort_by_key", "radix_sort_int", "radix_sort_float"],
        "numbers are sorted by `sort xs`, and elements by a number of each, `key x`, by `sort_by_key key xs`",
    ),
    (
        &["matmul", "mm", "dot", "einsum"],
        "a product is written out: `map (\\a -> map (\\b -> reduce (+) 0 (map2 (*) a b)) (transpose B)) A`",
    ),
    (&["ifelse", "iff", "cond"], "write `if c then a else b`, or `select c a b`"),
    (
        &["switch", "case", "match"],
        "there are no alternatives of a type; write `if c then a else b`",
    ),
    (
        &["scatter_2d", "scatter_3d"],
        "scatter the elements of the whole in a row: `split m (scatter (flatten A) (map2 (\\i j -> m * i + j) is js) xs)`",
    ),
    (
        &["reduce_by_index_2d", "hist_2d", "histogram2d", "histogram_2d", "hist2d"],
        "count the elements of the whole in a row: `split m (histogram (+) 0 (n * m) (map2 (\\i j -> m * i + j) is js) xs)`",
    ),
    (&["jvp", "vjp", "grad"], "there are no derivatives"),
    (
        &["to_bits", "from_bits"],
        "the bits of a float are no value here; `order_key x` is an integer in the order of the numbers, `x < 0` and `copysign x y` read and set the sign",
    ),
];

/// Returns what to write in place of a name that other languages have.
pub fn instead(name: &str) -> Option<&'static str> {
    FOREIGN.iter().find(|(names, _)| names.contains(&name)).map(|(_, help)| *help)
}
