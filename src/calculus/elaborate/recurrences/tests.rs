//! Loops that build arrays are scans, and others stay loops.

use crate::calculus::elaborate::elaborate;
use crate::calculus::term::{Op, ScanKind};
use crate::diag::Source;
use crate::lang::check_entry;

/// Returns how many scans, loops and scatters, reversals and concatenations the term of a program has. All of its size
/// parameters are `n`.
fn counts(n: u64, text: &str) -> [usize; 4] {
    let entry = check_entry(&Source::new("test.pat", text), None).unwrap_or_else(|e| panic!("{e}"));
    let sizes = entry.sizes.iter().map(|s| (s.clone(), n)).collect();
    let program = elaborate(&entry, &sizes).unwrap_or_else(|e| panic!("{e}"));
    let mut found = [0; 4];
    program.term.visit(&mut |t| match t.op() {
        Op::Scan(ScanKind::Seq) => found[0] += 1,
        Op::Fold | Op::While | Op::Scatter => found[1] += 1,
        Op::Reverse => found[2] += 1,
        Op::Concat => found[3] += 1,
        _ => {}
    });
    found
}

/// Returns the counts of a program with this body for each row `d` of `[n][m]f32`, whose results are such rows.
fn of_rows(body: &str) -> [usize; 4] {
    counts(12, &format!("entry f [n] [m] (U: [n][m]f32) : [n][m]f32 = map (\\d -> {body}) U"))
}

#[test]
fn an_array_that_is_built_forwards() {
    let body = "(loop (out, y) = (replicate m 0f32, 0f32) for i < m do \
                let v = d[i] + 0.5 * y in (out with [i] <- v, v)).0";
    assert_eq!(of_rows(body), [1, 0, 0, 0]);
}

#[test]
fn an_array_that_is_built_backwards() {
    // What is read at the place that is stored is an element, and is reversed as the result is.
    let body = "(loop (x, y) = (d, 0f32) for k < m do \
                let i = m - 1 - k in let v = x[i] - 0.5 * y in (x with [i] <- v, v)).0";
    assert_eq!(of_rows(body), [1, 0, 2, 0]);
}

#[test]
fn a_part_of_an_array() {
    // What the last two steps stored is state; the elements in front and behind stay.
    let body = "loop a = d for i < m - 3 do a with [i + 2] <- d[i] + 0.5 * a[i + 1] - 0.25 * a[i]";
    assert_eq!(of_rows(body), [1, 0, 0, 2]);
    let body = "loop a = d for i < m - 1 do if d[i] > 0 then a with [i] <- a[i + 1] else a";
    assert_eq!(of_rows(body), [1, 0, 0, 1]);
}

#[test]
fn rows_are_elements() {
    let text = "entry f [n] [t] (Z: [n][t][4]f32) : [n][t][4]f32 = \
                map (\\z -> (loop (x, out) = (z[0], z) for k < t do \
                let x = map2 (\\a b -> 0.5 * a + b) x z[k] in (x, out with [k] <- x)).1) Z";
    assert_eq!(counts(12, text), [1, 0, 0, 0]);
}

/// A loop of the host that stores a row in each step has a scan for each element of the rows, in a map, if elements never meet.
#[test]
fn the_host_has_scans_of_rows() {
    let of = |step: &str| {
        counts(
            12,
            &format!(
                "entry f [n] [m] (X: [n][m]f32) (c: [m]f32) (ds: [n]f32) (W: [m][m]f32) : [n][m]f32 = \
                 (loop (out, s, v) = (X, c, c) for k < n do {step}).0"
            ),
        )
    };
    for (step, reversed) in [
        ("let s = map2 (\\a b -> 0.5 * a + b) s X[k] in (out with [k] <- s, s, v)", 0),
        ("let w = map2 (\\a b -> a - b * ds[k]) v s in (out with [k] <- s, map2 (+) s w, w)", 0),
        ("let s = map (\\a -> 0.5 * a + f32.i64 k) s in (out with [n - 1 - k] <- s, s, v)", 1),
    ] {
        let [scans, loops, reversals, _] = of(step);
        assert_eq!((scans, loops), (1, 0), "{step}");
        assert!(reversals >= reversed, "{step}");
    }
    for step in [
        "let s = map2 (+) (rotate 1 s) X[k] in (out with [k] <- s, s, v)",
        "let s = map (\\w -> sum (map2 (*) w s)) W in (out with [k] <- s, s, v)",
        "let s = map2 (\\a w -> a + sum w) s W in (out with [k] <- s, s, v)",
    ] {
        assert_eq!(of(step)[0], 0, "{step}");
    }
}

#[test]
fn the_host_has_scans_of_scalars() {
    let text = "entry f [n] (xs: [n]f32) : ([n]f32, f32) = loop (out, y) = (xs, 0f32) for i < n do \
                let y = 0.75 * y + xs[i] in (out with [i] <- y, y)";
    assert_eq!(counts(12, text), [1, 0, 0, 0]);
    // Each step is a product, for all work-items of the device.
    let text = "entry f [n] (A: [n][n]f32) (X: [n][n]f32) : [n][n]f32 = \
                (loop (out, x) = (X, X[0]) for k < n do \
                let x = map (\\r -> sum (map2 (*) r x)) A in (out with [k] <- x, x)).0";
    assert_eq!(counts(12, text)[0], 0);
}

#[test]
fn what_stays_a_loop() {
    // It reads elements at places that data decide.
    let body = "loop a = d for i < m do a with [i] <- a[i] + a[i32.f32 d[i]]";
    assert_eq!(of_rows(body)[0], 0);
    // It stores at every second place, and at places outside of the array, which has no effect.
    let body = "loop a = d for i < m do a with [2 * i] <- 0.5 * d[i]";
    assert_eq!(of_rows(body)[0], 0);
    let body = "loop a = d for i < m do a with [i + 1] <- 0.5 * d[i]";
    assert_eq!(of_rows(body)[0], 0);
    // A group shares the work of a step.
    let text = "entry f [n] [t] [s] (A: [s][s]f32) (Z: [n][t][s]f32) : [n][t][s]f32 = \
                map (\\z -> (loop (x, out) = (z[0], z) for k < t do \
                let x = map (\\r -> sum (map2 (*) r x)) A in (x, out with [k] <- x)).1) Z";
    assert_eq!(counts(12, text)[0], 0);
    // So it stores the elements of a second loop, too.
    let text = "entry f [n] [t] [s] (A: [s][s]f32) (Z: [n][t][s]f32) : [n][t]f32 = \
                map (\\z -> let (x, out) = loop (x, out) = (z[0], z) for k < t do \
                (let x = map (\\r -> sum (map2 (*) r x)) A in (x, out with [k] <- x)) in \
                (loop (y, v) = (replicate t 0f32, 0f32) for k < t do \
                let v = out[k, 0] + v in (y with [k] <- v, v)).0) Z";
    assert_eq!(counts(12, text)[0], 0);
    // There are no steps.
    let text = "entry f [n] [m] (U: [n][m]f32) : [n][m]f32 = \
                map (\\d -> loop a = d for i < m - 12 do a with [i] <- 0.5 * a[i]) U";
    assert_eq!(counts(12, text)[0], 0);
}
