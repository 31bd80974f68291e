//! Chosen parts of results have the same elements as the whole.

use super::*;
use crate::calculus::arbitrary;
use crate::calculus::value::Tolerance;
use crate::calculus::value::compare_values;
use crate::diag::Source;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

/// Random indices of some dimensions: in any order, repeated, or none at all.
fn some(compiled: &Compiled, rng: &mut SmallRng) -> Choice {
    let axis = |n: usize, rng: &mut SmallRng| -> Axis {
        match rng.random_range(0..4) {
            0 => None,
            1 => Some((0..n).filter(|_| rng.random_bool(0.5)).collect()),
            _ if n == 0 => Some(Arc::new([])),
            _ => Some((0..rng.random_range(1..4)).map(|_| rng.random_range(0..n)).collect()),
        }
    };
    let part = |p: Part| p.lengths.iter().map(|n| axis(*n, rng)).collect();
    compiled.parts().into_iter().map(part).collect()
}

/// Selects the chosen elements from the whole result.
fn taken(compiled: &Compiled, whole: &Value, choice: &Choice) -> Value {
    let parts = compiled.parts().into_iter().zip(choice);
    Value::tuple(parts.map(|(p, axes)| {
        let part = whole.part(p.components);
        if axes.is_empty() { part } else { part.pick(axes).expect("axes of the part") }
    }))
}

fn exact(_: ScalarType) -> Tolerance {
    Tolerance { ulps: 0.0, per_root: 0.0, terms: 1 }
}

/// Compares several choices with the whole result; returns how many of them were less work.
fn agrees(what: &str, entry: &Entry, sizes: &Sizes, inputs: &[Value]) -> usize {
    let compiled = Compiled::new(entry, sizes, inputs).expect("a program that compiles");
    let Ok(whole) = compiled.run(&compiled.whole()) else { return 0 };
    let all = compiled.operations(&compiled.whole());
    let mut rng = SmallRng::seed_from_u64(7);
    let mut less = 0;
    for _ in 0..12 {
        let choice = some(&compiled, &mut rng);
        let got = compiled.run(&choice).unwrap_or_else(|e| panic!("{what}: {choice:?}: {e}"));
        let want = taken(&compiled, &whole, &choice);
        assert!(compare_values(&want, &got, exact).ok, "{what}: {choice:?}: {got} for {want}");
        less += usize::from(compiled.operations(&choice) < all);
    }
    less
}

#[test]
fn of_random_programs() {
    let mut less = 0;
    for seed in 0..400 {
        let sample = arbitrary::random(seed);
        let inputs = arbitrary::inputs(&sample.entry, &sample.sizes, seed);
        let values: Vec<Value> =
            sample.entry.params.iter().map(|p| inputs[p.name.as_str()].clone()).collect();
        less += agrees(&format!("seed {seed}"), &sample.entry, &sample.sizes, &values);
    }
    assert!(less > 500, "{less}");
}

/// Compiles an entry with `xs: [12]f32` and `A: [4][6]f32`.
fn of(body: &str) -> Compiled {
    let text = format!("entry f (xs: [12]f32) (A: [4][6]f32) = {body}");
    let (entries, errors) = crate::lang::check(&Source::new("f.pat", text));
    assert!(errors.is_empty(), "{body}: {errors:?}");
    let numbers: Vec<f64> = (0..24).map(|i| f64::from(i * 7 % 11) - 4.0).collect();
    let inputs = [Value::floats(F32, &[12], &numbers[..12]), Value::floats(F32, &[4, 6], &numbers)];
    agrees(body, &entries[0], &Sizes::new(), &inputs);
    Compiled::new(&entries[0], &Sizes::new(), &inputs).expect("a program that compiles")
}

#[expect(clippy::unnecessary_wraps, reason = "an axis is an option")]
fn at(indices: &[usize]) -> Axis {
    Some(indices.into())
}

#[test]
fn of_every_shape_only_what_is_needed_is_computed() {
    // Each result has 12 or 24 elements, computed by the same costly function.
    let costly = "(\\x -> sqrt (exp (sin x * cos x) + exp (tan x * abs x)))";
    let sum = "(\\x -> reduce (+) 0 (map (* x) xs))";
    for (body, choice) in [
        (format!("map {costly} xs"), vec![at(&[3])]),
        (format!("map (map {costly}) A"), vec![at(&[1]), at(&[2])]),
        (format!("transpose (map (map {costly}) A)"), vec![at(&[1]), at(&[2])]),
        (format!("join (map (map {sum}) A)"), vec![at(&[13])]),
        (format!("take 9 (join (map (map {sum}) A))"), vec![at(&[0])]),
        (format!("reverse (drop 3 (join (map (map {sum}) A)))"), vec![at(&[20])]),
        (format!("split 3 (map {sum} xs)"), vec![at(&[3]), at(&[1])]),
        (format!("rotate 5 (map {sum} xs)"), vec![at(&[8])]),
        (format!("reorderStride 3 (map {sum} xs)"), vec![at(&[8])]),
        (format!("concat (map {sum} xs) (map {costly} xs)"), vec![at(&[20])]),
        (format!("slide 3 1 (map {sum} xs)"), vec![at(&[9]), at(&[0])]),
        (format!("pad 1 1 mirror (map {sum} xs)"), vec![at(&[0])]),
        (format!("pad 1 2 wrap (map {sum} xs)"), vec![at(&[0])]),
        (format!("pad 1 2 clamp (map {sum} xs)"), vec![at(&[14])]),
        (format!("zip (map {sum} xs) (map {costly} xs)"), vec![at(&[4])]),
        (format!("map (map {sum}) (transpose (map (map {sum}) A))"), vec![at(&[4]), at(&[0])]),
        (format!("unzip (map (\\x -> ({costly} x, {sum} x)) xs)"), vec![at(&[4])]),
        (format!("let s = xs[0] in map (\\x -> {sum} (x * s)) xs"), vec![at(&[4])]),
        // Of named values, what is read.
        (format!("let h = map {sum} xs in map {costly} h"), vec![at(&[4])]),
        (format!("let h = map {sum} xs in let g = map {costly} h in zip h g"), vec![at(&[4])]),
        (format!("let h = map {sum} xs in map2 (+) h (map (* 2) h)"), vec![at(&[4])]),
        (format!("let h = map (map {sum}) A in transpose h"), vec![at(&[1]), at(&[2])]),
        (format!("map {sum} (gather xs (map (\\i -> 11 - i) (iota 12)))"), vec![at(&[4])]),
    ] {
        let compiled = of(&body);
        let (one, all) =
            (compiled.operations(&vec![choice]), compiled.operations(&compiled.whole()));
        assert!(one < 0.2 * all, "{body}: {one} of {all}");
    }
}

#[test]
fn of_named_tuples_each_component_has_its_own_lengths() {
    // `of` compares with the whole result.
    for body in [
        "let t = if xs[0] < 0 then (map (+ 1) xs, map (map (* 2)) A) else (xs, A) in map (+ 1) t.0",
        "let t = if xs[0] < 0 then (map (+ 1) xs, map (map (* 2)) A) else (xs, A) in \
         (reverse t.0, transpose t.1)",
        "let t = loop (x, y) = (xs, A) for i < 3 do (map (+ 1) x, map (map (* 2)) y) in map (+ 1) t.0",
    ] {
        of(body);
    }
}

#[test]
fn of_tuples_each_component_by_itself() {
    let compiled = of("(map (+ 1) xs, map (\\row -> (reduce (+) 0 row, row)) A, reduce (+) 0 xs)");
    let parts: Vec<_> = compiled.parts().into_iter().map(|p| (p.components, p.lengths)).collect();
    assert_eq!(parts, [(0..1, vec![12]), (1..3, vec![4]), (3..4, vec![])]);
    let choice = vec![vec![at(&[2, 0])], vec![at(&[3])], vec![]];
    let shapes: Vec<_> = compiled.components(&choice).into_iter().map(|c| c.1).collect();
    assert_eq!(shapes, [vec![2], vec![1], vec![1, 6], vec![]]);
    compiled.run(&choice).expect("a result");
}
