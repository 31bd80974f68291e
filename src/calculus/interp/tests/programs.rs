//! Whole programs, from their text.

use super::super::*;
use crate::calculus::value::Cell;
use crate::diag::Source;
use crate::lang::check_entry;
use crate::lang::types::ScalarType::{self, F32, I32};

fn eval(text: &str, sizes: &[(&str, u64)], inputs: &[Value]) -> Result<Value> {
    let entry = check_entry(&Source::new("test.pat", text), None)?;
    let sizes = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    run(&entry, &sizes, inputs)
}

fn list(ty: ScalarType, xs: &[f64]) -> Value {
    if ty.is_float() {
        Value::floats(ty, &[xs.len()], xs)
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "they are whole")]
        let xs: Vec<i64> = xs.iter().map(|x| *x as i64).collect();
        Value::ints(ty, &[xs.len()], &xs)
    }
}

fn gives(text: &str, sizes: &[(&str, u64)], inputs: &[Value], want: &[f64]) {
    let got = eval(text, sizes, inputs).unwrap_or_else(|e| panic!("{text}\n{e}"));
    assert_eq!(got.to_floats(), want, "{text}");
}

#[test]
fn views_of_nothing() {
    let nothing = [list(F32, &[])];
    // One chunk of no elements, and no windows.
    let chunk = "entry f [n] (xs: [n]f32) : [1]f32 = map (reduce (+) 7) (split n xs)";
    gives(chunk, &[("n", 0)], &nothing, &[7.0]);
    let windows =
        "entry f [n] (xs: [n]f32) : [n]f32 = map (reduce (+) 0) (slide 3 1 (pad 1 1 0 xs))";
    gives(windows, &[("n", 0)], &nothing, &[]);
}

#[test]
fn linear_algebra() {
    let (x, y) = (list(F32, &[1.0, -2.0, 3.0, -4.0]), list(F32, &[1.0, 1.0, 2.0, 2.0]));
    let n = &[("n", 4)][..];
    let asum = "entry asum [n] (xs: [n]f32) : f32 = xs |> map abs |> reduce (+) 0";
    gives(asum, n, std::slice::from_ref(&x), &[10.0]);
    let dot = "entry dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)";
    gives(dot, n, &[x, y], &[-3.0]);
    let gemv = "def dot [n] (xs: [n]f32) (ys: [n]f32) : f32 = reduce (+) 0 (map2 (*) xs ys)
entry gemv [n][m] (A: [n][m]f32) (x: [m]f32) (y: [n]f32) (alpha: f32) (beta: f32) : [n]f32 =
  map2 (\\row yi -> alpha * dot row x + beta * yi) A y";
    let scalar = |x| Value::scalar(F32, Cell::float(F32, x));
    let inputs = [
        Value::floats(F32, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        list(F32, &[1.0, 0.0, -1.0]),
        list(F32, &[10.0, 20.0]),
        scalar(2.0),
        scalar(0.5),
    ];
    gives(gemv, &[("n", 2), ("m", 3)], &inputs, &[1.0, 6.0]);
    let product = "entry mm [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
  map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";
    let a = Value::floats(F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let b = Value::floats(F32, &[2, 2], &[5.0, 6.0, 7.0, 8.0]);
    gives(product, &[("n", 2), ("m", 2), ("k", 2)], &[a, b], &[19.0, 22.0, 43.0, 50.0]);
}

#[test]
fn patterns() {
    let x = [list(I32, &[3.0, 1.0, 2.0, 5.0])];
    let n = &[("n", 4)][..];
    let each = |body: &str, want: &[f64]| {
        gives(&format!("entry f [n] (xs: [n]i32) = {body}"), n, &x, want);
    };
    each("scan (+) 0 xs", &[3.0, 4.0, 6.0, 11.0]);
    each("reducePart max 0 2 xs", &[3.0, 5.0]);
    each("join (map reverse (split 2 xs))", &[1.0, 3.0, 5.0, 2.0]);
    each("xs |> pad 1 1 clamp |> slide 3 1 |> map (reduce (+) 0)", &[7.0, 6.0, 8.0, 12.0]);
    each("gather xs (map (\\i -> 3 - i) (iota n))", &[5.0, 2.0, 1.0, 3.0]);
    each("histogram (+) 0 2 (map (% 2) xs) xs", &[2.0, 9.0]);
    each("map (\\(a, b) -> a * b) (zip xs (rotate 1 xs))", &[3.0, 2.0, 10.0, 15.0]);
    each("iterate 2 (\\ys -> map (reduce (+) 0) (split 2 ys)) xs", &[11.0]);
    each("iterate 3 (map (+ 1)) xs", &[6.0, 4.0, 5.0, 8.0]);
    each("reorderStride 2 xs", &[3.0, 2.0, 1.0, 5.0]);
    each("loop (s = 0) for i < n do s + xs[i] * i", &[20.0]);
    each("asScalar (map (vectorize 2 (\\v -> v + 1)) (asVector 2 xs))", &[4.0, 2.0, 3.0, 6.0]);
    each("map (\\x -> if x > 2 then f32.i32 x else 0.5) xs", &[3.0, 0.5, 0.5, 5.0]);
    each("concat (take 1 xs) (drop 3 xs)", &[3.0, 5.0]);
    each(
        "reduce (\\(a, i) (b, j) -> if a >= b then (a, i) else (b, j)) (0, 0) (zip xs (iota n))",
        &[5.0, 3.0],
    );
    each("map (\\i -> sum xs[i:i + 2]) (iota 3)", &[4.0, 3.0, 7.0]);
    each("join (map (\\i -> xs[2 * i + 1:2 * i - 1:-1]) (iota 2))", &[1.0, 3.0, 5.0, 2.0]);
    each("loop s = 0 for i < n - 2 do s * 10 + sum xs[i64.i32 i:i64.i32 i + 3:2]", &[56.0]);
    each("let k = xs[1] in xs with [k:k + 2] <- [7, 8]", &[3.0, 7.0, 8.0, 5.0]);
    each("let b = u8.i32 (xs[3] + 250) in sum (replicate 300 1)[b:b + 3]", &[3.0]);
    // What lies outside has no effect.
    each("let k = xs[0] in xs with [k:k + 2] <- [7, 8]", &[3.0, 1.0, 2.0, 7.0]);
    each(
        "let k = xs[1] in join ((split 2 xs) with [k:k + 2, 2 * k - 2:2 * k - 1] <- [[7], [8]])",
        &[3.0, 1.0, 7.0, 5.0],
    );
    each("join (pad 1 1 0 (map (pad 1 0 9) (split 4 xs)))", &{
        let mut all = [0.0; 15];
        all[5..10].copy_from_slice(&[9.0, 3.0, 1.0, 2.0, 5.0]);
        all
    });
    each("histogram (+) 0 4 (map (\\x -> x - 2) xs) xs", &[2.0, 3.0, 0.0, 5.0]);
    each("reduce_by_index (replicate 2 1) (+) 0 (map (\\x -> x - 2) xs) xs", &[3.0, 4.0]);
    let code = |body: &str| {
        let text = format!("entry f [n] (xs: [n]i32) = {body}");
        eval(&text, n, &x).unwrap_err().0[0].code
    };
    assert_eq!(code("map (/ 0) xs"), Error::Eval);
    assert_eq!(code("gather xs xs"), Error::Eval);
    assert_eq!(code("let k = xs[0] in sum xs[k:k + 2]"), Error::Eval);
    assert_eq!(code("scatter xs (replicate n 0) xs"), Error::Eval);
    assert_eq!(code("split 3 xs"), Error::NotDivisible);
}

#[test]
fn long_maps_are_shared_out() {
    let n = 70_001;
    let x = Value::ints(I32, &[n], &(0i64..).take(n).collect::<Vec<_>>());
    let run = |body: &str| {
        eval(
            &format!("entry f [n] (xs: [n]i32) = {body}"),
            &[("n", n as u64)],
            std::slice::from_ref(&x),
        )
    };
    let out = run("map (\\x -> (x, x * 2 + reduce (+) 0 (map (% 3) (take 4 xs)))) xs")
        .expect("the program has a value");
    let ints = out.to_ints();
    assert!((0..n).all(|i| ints[i] == i as i128 && ints[n + i] == 2 * i as i128 + 3));
    // The first error in order is reported, whichever thread finds it.
    let error = run("map (\\x -> xs[x + 69_990]) xs").unwrap_err();
    assert!(error.0[0].message.contains("[70001]"), "{:?}", error.0[0]);
}
