//! Updates of arrays at computed places by the work-items of a group, in a loop and outside of loops.

use crate::check::{Kernels, array, cpu, kernels};

/// Numbers of rows and their lengths: shorter than a group, several rounds.
const ROWS: &[[u64; 2]] = &[[3, 3], [2, 7], [5, 16], [2, 100], [1, 1028]];

fn of(program: &str, [n, m]: [u64; 2], row: &str) -> Kernels {
    let term = format!("mapWrg 0 ({row}) . xs");
    kernels(program, &[("n", n), ("m", m)], &[("xs", array(&[n, m]))], &term)
}

/// Each step replaces an element of its row, at a place that may be outside, and keeps another one in a small array.
fn replaced([n, m]: [u64; 2]) -> Kernels {
    let program = format!(
        "entry replaced [n][m] (xs: [n][m]f32) : [n][3]f32 =
           map (\\row ->
             (loop (cur, out) = (row, replicate 3 0f32) for k < 3 do
               let s = sum cur in (cur with [i32.f32 s % {m}] <- s, out with [k] <- cur[k])).1) xs"
    );
    let cur = "(fst . fst . fst)";
    let place = format!("replicate 1 . (\\x -> i32.f32 x % {m}) . snd");
    let row = format!("scatter . fork {cur} (fork ({place}) (replicate 1 . snd))");
    let kept = format!("replicate 1 . index . fork {cur} (snd . fst)");
    let out = format!("scatter . fork (snd . fst . fst) (fork (replicate 1 . snd . fst) ({kept}))");
    let sum = format!("reduceLcl {} (+) 0.0 id . fst . fst", m.min(64));
    let start = "fork (fork id (replicate 3 . 0.0 . bang)) (iota 3 i32)";
    let step = format!("fork ({row}) ({out}) . fork id ({sum})");
    of(&program, [n, m], &format!("snd . foldSeq ({step}) . {start}"))
}

#[test]
fn a_loop_of_a_group_updates_its_row() {
    let rt = cpu();
    for rows in ROWS {
        let k = replaced(*rows);
        k.run(&rt);
        k.grind();
        let of_row = |len: &usize| u64::try_from(*len).is_ok_and(|len| len >= rows[1]);
        let lengths = || k.ir.kernels[0].locals.iter().map(|a| a.len);
        // The row is there once.
        if rows[1] > 64 {
            assert_eq!(lengths().filter(of_row).count(), 1, "{}", k.plan.source);
        }
    }
}

/// Each step replaces a row by one that is computed from two.
#[test]
fn a_loop_of_a_group_updates_rows() {
    let rt = cpu();
    for [n, m] in ROWS {
        let program = "entry rows [n][m] (xs: [n][4][m]f32) : [n][4][m]f32 =
           map (\\a -> loop q = a for k < 4 do q with [k, :] <- map2 (+) q[k] q[3 - k]) xs";
        let value = "mapLcl 0 (+) . zip . fork index (index . bimap reverse id)";
        let step = format!("scatter . fork fst (fork (replicate 1 . snd) (replicate 1 . {value}))");
        let term = format!("mapWrg 0 (foldSeq ({step}) . fork id (iota 4 i32)) . xs");
        let sizes = [("n", *n), ("m", *m)];
        let k = kernels(program, &sizes, &[("xs", array(&[*n, 4, *m]))], &term);
        k.run(&rt);
        k.grind();
    }
}

/// An array that the group computes, with elements at many places.
#[test]
fn a_group_stores_at_many_places() {
    let rt = cpu();
    for [n, m] in ROWS {
        let program = "entry many [n][m] (xs: [n][m]f32) : [n][m]f32 =
           map (\\r -> scatter (map (* 3) r) (map (* 2) (iota m)) r) xs";
        let places = format!("mapLcl 0 (\\x -> x * 2) . iota {m} i32");
        let row = format!("scatter . fork (mapLcl 0 (\\x -> x * 3.0)) (fork ({places}) id)");
        let k = of(program, [*n, *m], &row);
        k.run(&rt);
        k.grind();
    }
}
