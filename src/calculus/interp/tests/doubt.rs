//! Programs whose course depends on rounding: all legal results are accepted, and no others.

#![expect(clippy::cast_possible_truncation, reason = "rounded to the type")]

use super::super::*;
use crate::calculus::value::compare;
use crate::diag::Source;
use crate::lang::check_entry;
use crate::lang::types::ScalarType::F32;

/// Returns the result on floats, and the length of the longest sum.
fn found(text: &str, xs: &[f64]) -> (Value, u64) {
    let entry = check_entry(&Source::new("test.pat", text), None).expect("a program");
    let sizes = Sizes::from([("n".to_owned(), xs.len() as u64)]);
    let value = run(&entry, &sizes, &[Value::floats(F32, &[xs.len()], xs)]).expect("a value");
    (value, terms(&entry, &sizes))
}

fn right(text: &str, xs: &[f64], got: &[i32]) -> bool {
    let (value, terms) = found(text, xs);
    let bytes: Vec<u8> = got.iter().flat_map(|x| x.to_le_bytes()).collect();
    compare(&value, &[bytes], terms).ok
}

fn right_float(text: &str, xs: &[f64], got: f32) -> bool {
    let (value, terms) = found(text, xs);
    compare(&value, &[got.to_le_bytes()], terms).ok
}

/// `n` numbers that are not exact in binary.
fn tenths(n: usize) -> Vec<f64> {
    vec![0.1; n]
}

#[test]
fn conversions_at_a_jump() {
    // The sum of ten times 0.1, times 1000, is 1000 or 999.99994.
    let text = "entry f [n] (xs: [n]f32) : i32 = i32.f32 (1000 * reduce (+) 0 xs)";
    let ten = tenths(10);
    assert!(right(text, &ten, &[1000]) && right(text, &ten, &[999]));
    assert!(!right(text, &ten, &[998]) && !right(text, &ten, &[1001]));
    // Away from a jump, or without rounding, there is one answer.
    assert!(right(text, &[0.0104], &[10]) && !right(text, &[0.0104], &[9]));
    assert!(right(text, &[2.0, 3.0], &[5000]) && !right(text, &[2.0, 3.0], &[4999]));
    for f in ["floor", "ceil", "round"] {
        let shift = if f == "round" { 0.5 } else { 0.0 };
        let text = format!("entry f [n] (xs: [n]f32) : f32 = {f} (reduce (+) {shift:.1} xs)");
        let (low, high) = if f == "ceil" { (1.0, 2.0) } else { (0.0, 1.0) };
        let (low, high) = if f == "round" { (1.0, 2.0) } else { (low, high) };
        assert!(right_float(&text, &ten, low) && right_float(&text, &ten, high), "{f}");
        // The error of a float is as large on either side.
        assert!(!right_float(&text, &ten, high + 2.0) && !right_float(&text, &ten, low - 2.0));
        assert!(!right_float(&text, &tenths(3), high + 1.0), "{f}");
    }
}

#[test]
fn remainders_at_a_jump() {
    let text = "entry f [n] (xs: [n]f32) : f32 = (reduce (+) 0 xs) % 1.0";
    assert!(right_float(text, &tenths(10), 0.0) && right_float(text, &tenths(10), 0.999_999_9));
    assert!(!right_float(text, &tenths(3), 0.9) && right_float(text, &tenths(3), 0.3));
    assert!(right_float(text, &[2.5], 0.5) && !right_float(text, &[2.5], 0.500_000_1));
}

#[test]
fn conditions_that_rounding_decides() {
    let text = "entry f [n] (xs: [n]f32) : i32 = if reduce (+) 0 xs < 1.0 then 7 else 40";
    assert!(right(text, &tenths(10), &[7]) && right(text, &tenths(10), &[40]));
    assert!(!right(text, &tenths(10), &[8]));
    assert!(right(text, &tenths(9), &[7]) && !right(text, &tenths(9), &[40]));
    assert!(right(text, &[0.5, 0.5], &[40]) && !right(text, &[0.5, 0.5], &[7]));
    let both = "entry f [n] (xs: [n]f32) : i32 =
        let s = reduce (+) 0 xs in if s < 1.0 && n > 3 || s > 7.0 then 7 else 40";
    assert!(right(both, &tenths(10), &[7]) && right(both, &tenths(10), &[40]));
    assert!(!right(both, &tenths(9), &[40]));
    // Each element of an array comes from one branch or from the other.
    let rows = "entry f [n] (xs: [n]f32) : [2]i32 =
        if reduce (+) 0 xs < 1.0 then iota 2 else map (\\i -> i + 5) (iota 2)";
    assert!(right(rows, &tenths(10), &[0, 1]) && right(rows, &tenths(10), &[5, 6]));
    assert!(!right(rows, &tenths(10), &[0, 2]) && !right(rows, &tenths(9), &[5, 6]));
}

#[test]
fn the_least_of_nearly_equal_elements() {
    let text = "def less (a: (f32, i32)) (b: (f32, i32)) : (f32, i32) = if a.0 <= b.0 then a else b
entry f [n] (xs: [n]f32) : i32 =
  (reduce less (1000.0, 0) (zip (map (\\x -> x * x / 3.0) xs) (iota n))).1";
    let xs = [5.0, 1.3, 4.0, -1.3, 1.4];
    assert!(right(text, &xs, &[1]) && right(text, &xs, &[3]));
    assert!(!right(text, &xs, &[0]) && !right(text, &xs, &[2]) && !right(text, &xs, &[4]));
    // Equal inputs that no operation has rounded are equal everywhere: the first of them is the result.
    let inputs = text.replace("x * x / 3.0", "x * x");
    let xs = [5.0, 1.0, 4.0, -1.0, 2.0];
    assert!(right(&inputs, &xs, &[1]) && !right(&inputs, &xs, &[3]));
}

#[test]
fn indices_that_rounding_decides() {
    let gather = "entry f [n] (xs: [n]f32) : [1]i32 =
        gather (map (\\i -> i * i) (iota 8)) (replicate 1 (i32.f32 (reduce (+) 0 xs)))";
    assert!(right(gather, &tenths(10), &[0]) && right(gather, &tenths(10), &[1]));
    assert!(!right(gather, &tenths(10), &[4]) && !right(gather, &tenths(9), &[1]));
    let index = "entry f [n] (xs: [n]f32) : i32 =
        let ys = map (\\i -> i * i) (iota 8) in ys[i32.f32 (reduce (+) 2.0 xs)]";
    assert!(right(index, &tenths(10), &[4]) && right(index, &tenths(10), &[9]));
    assert!(!right(index, &tenths(10), &[1]) && !right(index, &tenths(9), &[9]));
    let bins = "entry f [n] (xs: [n]f32) : [3]i32 = histogram (+) 0 3
        (map (\\x -> i32.f32 (x / 0.1)) xs) (map (\\x -> 1) xs)";
    let xs = [0.1, 0.15, 0.0];
    assert!(right(bins, &xs, &[1, 2, 0]) && right(bins, &xs, &[2, 1, 0]));
    assert!(!right(bins, &xs, &[0, 2, 0]) && !right(bins, &xs, &[1, 1, 1]));
}

#[test]
fn loops_that_rounding_ends() {
    let text = "entry f [n] (xs: [n]f32) : i32 =
        let s = reduce (+) 0 xs in
        (loop ((x, k) = (0.0, 0)) while x < s do (x + 0.25, k + 1)).1";
    // The sum of four times 0.25 is exactly 1; the sum of ten tenths is not.
    assert!(right(text, &tenths(10), &[4]) && right(text, &tenths(10), &[5]));
    assert!(!right(text, &tenths(10), &[3]) && !right(text, &tenths(10), &[6]));
    assert!(right(text, &tenths(9), &[4]) && !right(text, &tenths(9), &[5]));
    let count = "entry f [n] (xs: [n]f32) : i32 =
        loop (k = 0) for i < i32.f32 (reduce (+) 0 xs) do k + 3";
    assert!(right(count, &tenths(10), &[0]) && right(count, &tenths(10), &[3]));
    assert!(!right(count, &tenths(10), &[6]));
}

#[test]
fn loops_that_end_when_nothing_changes() {
    // The condition compares equal floats, and so stays in doubt after the last step: only as many steps as change something
    // are possible.
    let text = "entry f [n] (xs: [n]f32) : i32 =
        let s = reduce (+) 0 xs in
        let (x, _) = loop (x = s + 0.5, going = true) while going do let y = min x s in (y, y < x) in
        i32.f32 x";
    assert!(right(text, &tenths(10), &[1]) && right(text, &tenths(10), &[0]));
    assert!(!right(text, &tenths(10), &[2]));
}

#[test]
fn sequential_folds_may_drift_and_need_not() {
    let n = 3_000_000;
    let text = "entry f [n] (xs: [n]f32) : f32 = reduceSeq (+) 0 xs";
    let xs = tenths(n);
    let drifted = xs.iter().fold(0f32, |sum, x| sum + *x as f32);
    let exact = (f64::from(0.1f32) * n as f64) as f32;
    assert!((drifted - exact).abs() > 1000.0);
    assert!(right_float(text, &xs, drifted) && right_float(text, &xs, exact));
    assert!(!right_float(text, &xs, 3.0 * exact - 2.0 * drifted));
    // `reduce` allows any order, so the large error of the sequential order is not accepted.
    let any = text.replace("reduceSeq", "reduce");
    assert!(right_float(&any, &xs, exact) && !right_float(&any, &xs, drifted));
}
