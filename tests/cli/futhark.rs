//! Futhark's data files, and the programs of its benchmarks on their published data.

use super::{Place, Ran, floats, npy, read_floats};
use patsat::session::{futhark, npy::NpyArray};
use std::path::Path;

const PARTS: &str = "entry parts [k] [n] (k: i64) (xs: [n]f32) (up: bool) : ([k]f32, i32) =\n\
                     (generate k (\\i -> if up then xs[i] else xs[n - 1 - i]), k)";

#[test]
fn parameters_in_order() {
    let p = Place::new();
    let program = p.file("parts.pat", PARTS);
    let data = p.file("parts.in", "2i64 -- k\n[1f32, 2.5f32,\n 3e0f32] true");
    let out = p.path("parts.out");
    p.run(&format!("eval {program} --input-futhark {data} --output {}", out.display())).ok();
    let written = std::fs::read_to_string(&out).expect("it was written");
    assert_eq!(written, "[1.0f32, 2.5f32]\n2i32\n");
    // What was written is read as a parameter; the other parameters are given in other ways.
    let whole = p.file("xs.in", "[1f32, 2f32, 3f32]");
    let ran = p.run(&format!("eval {program} --input xs={whole} --arg up=false --size k=1")).ok();
    assert_eq!(ran.stdout(), "0: [1]f32 [3.0]\n1: 1\n");
    let command = format!(
        "run {program} --input-futhark {data} --budget 1 --no-store --device portable --verify \
         --output {}",
        p.path("parts.npy").display()
    );
    p.run(&command).ok();
    assert_eq!(read_floats(&p.path("parts.0.npy")), [1.0, 2.5]);
    // The output must not replace the input, nor a file of another kind.
    p.run(&format!("eval {program} --input-futhark {data} --output {data}")).fails("E0908", 9);
    let other = p.file("other.out", "a text");
    p.run(&format!("eval {program} --input-futhark {data} --output {other}")).fails("E0908", 9);
}

#[test]
fn a_size_among_the_parameters_of_a_definition() {
    let p = Place::new();
    let program = p.file(
        "first.pat",
        "def first [k] [n] (k: i64) (xs: [n]f32) : [k]f32 = generate k (\\i -> xs[i])\n\
         entry f [n] (xs: [2*n]f32) : [n]f32 = map2 (+) (first n xs) (first (2 * n) xs)[n:]\n",
    );
    let xs = p.file("xs.npy", npy("<f4", false, "(4,)", &floats(&[1.0, 2.0, 3.0, 4.0])));
    let ran = p.run(&format!("eval {program} --input xs={xs}")).ok();
    assert_eq!(ran.stdout(), "[2]f32 [4.0, 6.0]\n");
    // A size that no binder names, in the syntax of Futhark.
    let program = p.file(
        "idioms.pat",
        "entry f [n] (k: i64) (xs: *[n]i32) : [n + k]i32 =\n\
         let xs[0] = xs[1] // 2\n\
         in map1 (>>> 1) <| xs ++ replicate (i64.i32 k) (-1) :> [n + k]i32\n",
    );
    let data = p.file("idioms.in", "1i64 [7, -7]");
    let ran = p.run(&format!("eval {program} --input-futhark {data}")).ok();
    assert_eq!(ran.stdout(), "[3]i32 [2147483646, 2147483644, 2147483647]\n");
    let wrong = p.file("wrong.pat", "entry f [k] (k: f32) : f32 = k");
    p.run(&format!("check {wrong}")).fails("E0301", 3);
    let twice = p.file("twice.pat", "entry f [k] (k: i32) (k: i32) : i32 = k");
    p.run(&format!("check {twice}")).fails("E0202", 3);
    let length = p.file(
        "length.pat",
        "def g [k] (k: i32) : [k]i32 = iota k\nentry f (n: i32) : i32 = sum (g n)",
    );
    p.run(&format!("check {length}")).fails("E0301", 3);
}

#[test]
fn integers_of_other_types() {
    let p = Place::new();
    let program = p.file("sum.pat", "entry f [n] (xs: [n]i32) (a: f32) : i32 = sum xs + i32.f32 a");
    let eval =
        |text: &str| p.run(&format!("eval {program} --input-futhark {}", p.file("x.in", text)));
    assert_eq!(eval("[1i64, 2i64, -3i64] 4f32").ok().stdout(), "4\n");
    let said = eval("[1i64, 2147483648i64] 4f32").fails("E0504", 4).stderr();
    assert!(said.contains("2147483648"), "{said}");
    eval("[1] 4").fails("E0504", 4);
    let said = eval("[1] 4.0").fails("E0504", 4).stderr();
    assert!(said.contains("holds f64") && said.contains("1f32"), "{said}");
    let numpy = p.file("xs.npy", npy("<i8", false, "(1,)", &7i64.to_le_bytes()));
    let ran = p.run(&format!("eval {program} --input xs={numpy} --arg a=0.0")).ok();
    assert_eq!(ran.stdout(), "7\n");
}

#[test]
fn bad_files() {
    let p = Place::new();
    let program = p.file("parts.pat", PARTS);
    let eval =
        |text: &str| p.run(&format!("eval {program} --input-futhark {}", p.file("x.in", text)));
    let said = eval("2\n[1f32, 2f32, x] true").fails("E0502", 4).stderr();
    assert!(said.contains("x.in:2:14: expected a value"), "{said}");
    let said = eval("2 [1f32, 2f32]").fails("E0503", 4).stderr();
    assert!(said.contains("`k`, `xs`, `up`"), "{said}");
    eval("-2 [1f32] true").fails("E0504", 4);
    eval("[2] [1f32] true").fails("E0504", 4);
    eval("2 1f32 true").fails("E0503", 4);
    let two = p.file("two.in", "1 2");
    p.run(&format!("eval {program} --input xs={two} --arg up=true --size k=1")).fails("E0502", 4);
    let good = p.file("good.in", "1 [1f32] true");
    let again = format!("eval {program} --input-futhark {good}");
    p.run(&format!("{again} --arg up=true")).fails("E0903", 2);
    p.run(&format!("{again} --size k=2")).fails("E0903", 2);
    p.run(&format!("eval {program} --input-futhark /no/such.in")).fails("E0901", 9);
}

/// Runs a program on the data in its folder, and compares with the results there. A published number has six decimals, and
/// comes from another order of the same operations on floats.
#[track_caller]
pub fn compare(verb: &str, program: &str, set: &str, relative: f64) {
    let p = Place::new();
    let out = p.path("result.out");
    let program = Path::new("programs").join(program).with_extension("pat");
    let data = program.with_file_name("data").join(set);
    let (input, place) = (data.with_extension("in"), out.display());
    let command = format!(
        "{verb} {} --input-futhark {} --output {place}",
        program.display(),
        input.display()
    );
    let ran: Ran = p.run(&command).ok();
    let found = futhark::read(&out).expect("results");
    let expected = futhark::read(&data.with_extension("out")).expect("expected results");
    assert_eq!(found.len(), expected.len(), "{}", ran.stderr());
    for (k, (have, want)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(have.shape, want.shape, "result {k}");
        let number = |a: &NpyArray, i| a.data.as_f64(i).expect("a number");
        for i in 0..want.data.len() {
            let (x, y) = (number(have, i), number(want, i));
            let allowed = 1e-6 + relative * y.abs();
            assert!((x - y).abs() <= allowed, "{set}: result {k}, element {i}: {x}, not {y}");
        }
    }
}

#[track_caller]
fn published(verb: &str, program: &str, set: &str, relative: f64) {
    compare(verb, &format!("futhark/{program}"), set, relative);
}

#[test]
fn lud() {
    published("eval", "lud", "lud-16", 1e-5);
    // The matrix is badly conditioned.
    published("eval", "lud", "lud-64", 1e-3);
    published("run --device portable --budget 0 --no-store", "lud", "lud-64", 1e-3);
}

#[test]
fn kmeans() {
    published("eval", "kmeans", "kmeans-trivial", 1e-5);
}

#[test]
fn pagerank() {
    published("eval", "pagerank", "pagerank-small", 1e-5);
}

#[test]
fn backprop() {
    published("eval", "backprop", "backprop-small", 1e-5);
}

#[test]
fn myocyte() {
    published("eval", "myocyte", "myocyte-small", 1e-4);
}

/// The interpreter would take minutes.
#[test]
fn locvolcalib() {
    let run = "run --device portable --float relaxed --budget 0 --no-store";
    published(run, "locvolcalib", "locvolcalib-small", 1e-3);
}

/// The mean of the payoffs of all samples, on the device; the interpreter would take minutes.
#[test]
fn optionpricing() {
    let run = "run --device portable --float relaxed --budget 0 --no-store";
    published(run, "optionpricing", "optionpricing-medium", 1e-3);
}

/// Nothing is published for it: the results are those of another implementation, in NumPy.
#[test]
fn fluid() {
    published("eval", "fluid", "fluid-14", 1e-5);
}
