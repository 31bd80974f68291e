//! Chooses the elements of a result that the interpreter computes when it would take too long to compute all.

use crate::calculus::interp::{Axis, Choice, Compiled};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// Least number of indices kept in a dimension before the next dimension is thinned out too.
const SPREAD: usize = 16;

/// Most indices of a dimension, unless all are taken. The places of windows and neighbours of many more elements take
/// longer to list than their values to compute, and tell no more.
const MOST: usize = 1 << 14;

/// A fixed seed: a program always gets the same sample.
const SEED: u64 = 0x5eed;

/// Returns a sample of the result that takes about `budget` operations. The sample has the first and last index of
/// each dimension and others spread between them: as many indices of the outermost dimension as the budget and
/// [`MOST`] allow, and fewer of the next dimension only if a few outermost indices already exceed the budget. Returns `None` if the
/// budget allows the whole result, or if even the smallest sample costs almost as much as the whole.
pub fn sample(compiled: &Compiled, budget: f64) -> Option<Choice> {
    let whole = compiled.operations(&compiled.whole());
    if whole <= budget {
        return None;
    }
    let lengths: Vec<Vec<usize>> = compiled.parts().into_iter().map(|p| p.lengths).collect();
    let depth = lengths.iter().map(Vec::len).max()?;
    // The number of indices taken in each dimension, the same for all parts.
    let mut taken: Vec<usize> = vec![];
    let cost = |taken: &[usize]| compiled.operations(&choice(&lengths, taken));
    for d in 0..depth {
        let longest = lengths.iter().filter_map(|l| l.get(d)).max().copied().unwrap_or(0);
        let at = |n: usize| [&taken[..], &[n]].concat();
        let few = longest.min(SPREAD);
        if cost(&at(few)) <= budget {
            let (mut fits, mut beyond) = (few, longest.min(MOST) + 1);
            while beyond - fits > 1 {
                let middle = fits.midpoint(beyond);
                if cost(&at(middle)) <= budget { fits = middle } else { beyond = middle }
            }
            taken.push(fits);
            break;
        }
        taken.push(few);
    }
    // If the sample still exceeds the budget, take fewer indices, of the outermost dimensions first.
    for d in 0..taken.len() {
        while taken[d] > 2 && cost(&taken) > budget {
            taken[d] = (taken[d] / 2).max(2);
        }
    }
    let least = cost(&taken);
    (least <= budget || least < 0.5 * whole).then(|| choice(&lengths, &taken))
}

/// Returns a choice with the given number of indices in each dimension.
fn choice(lengths: &[Vec<usize>], taken: &[usize]) -> Choice {
    let mut rng = SmallRng::seed_from_u64(SEED);
    let mut axis =
        |(n, k): (&usize, &usize)| -> Axis { (k < n).then(|| spread(*n, *k, &mut rng).into()) };
    lengths.iter().map(|l| l.iter().zip(taken).map(&mut axis).collect()).collect()
}

/// Returns `k` of `n` indices, `2 <= k < n`: the first, the last, and a random one from each of `k - 2` equal parts
/// between them.
fn spread(n: usize, k: usize, rng: &mut SmallRng) -> Vec<usize> {
    let (inner, parts) = (n - 2, k - 2);
    let begin = |p: usize| 1 + (p as u128 * inner as u128 / parts.max(1) as u128) as usize;
    let mut out = vec![0];
    out.extend((0..parts).map(|p| rng.random_range(begin(p)..begin(p + 1))));
    out.push(n - 1);
    out
}

/// Returns the row-major indices of the chosen elements in a component with the given dimensions; `None` if all are
/// chosen.
pub fn places(lengths: &[usize], axes: &[Axis]) -> Option<Vec<usize>> {
    if axes.iter().all(Option::is_none) {
        return None;
    }
    let mut out = vec![0];
    for (d, n) in lengths.iter().enumerate() {
        let step = |from: &usize, i: usize| from * n + i;
        out = match axes.get(d) {
            Some(Some(at)) => {
                out.iter().flat_map(|from| at.iter().map(move |i| step(from, *i))).collect()
            }
            _ => out.iter().flat_map(|from| (0..*n).map(move |i| step(from, i))).collect(),
        };
    }
    Some(out)
}

/// Returns the choice of a single element: the one of `component` at a row-major index. Nothing is chosen in parts
/// without that component.
pub fn only(compiled: &Compiled, component: usize, index: usize) -> Choice {
    let shapes = compiled.shape().components();
    let parts = compiled.parts().into_iter();
    let mut lengths = shapes.get(component).map_or_else(Vec::new, |c| c.1.clone());
    let mut at = index;
    for n in lengths.iter_mut().rev() {
        let i = at.checked_rem(*n).unwrap_or(0);
        at = at.checked_div(*n).unwrap_or(0);
        *n = i;
    }
    parts
        .map(|p| {
            let mine = p.components.contains(&component);
            let axis = |d: usize| -> Axis {
                Some(if mine { [lengths[d]].as_slice().into() } else { [].into() })
            };
            (0..p.lengths.len()).map(axis).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::interp::Sizes;
    use crate::calculus::value::Value;
    use crate::diag::Source;
    use crate::lang::check_entry;
    use crate::lang::types::ScalarType::F32;

    fn compiled(body: &str) -> Compiled {
        let text = format!("entry f (A: [40][30]f32) (B: [30][50]f32) = {body}");
        let entry =
            check_entry(&Source::new("f.pat", text), None).expect("the program is well-typed");
        let ramp = |n: usize| (0..n).map(|i| (i % 17) as f64 - 8.0).collect::<Vec<_>>();
        let inputs = [
            Value::floats(F32, &[40, 30], &ramp(1200)),
            Value::floats(F32, &[30, 50], &ramp(1500)),
        ];
        Compiled::new(&entry, &Sizes::default(), &inputs).expect("it has a value on its inputs")
    }

    const PRODUCT: &str =
        "map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";

    #[test]
    fn samples_fit_the_budget_and_reach_both_ends() {
        let c = compiled(PRODUCT);
        let whole = c.operations(&c.whole());
        assert!(sample(&c, whole).is_none());
        for share in [0.9, 0.6, 0.3, 0.1, 0.01] {
            let choice = sample(&c, share * whole).expect("a sample is smaller than the whole");
            assert!(c.operations(&choice) <= share * whole, "{share}");
            let rows = choice[0][0].as_deref().expect("rows are left out");
            assert!(rows.is_sorted_by(|a, b| a < b), "{rows:?}");
            assert_eq!((rows[0], rows[rows.len() - 1]), (0, 39));
            // Columns are thinned out only if there are few rows.
            let inside = choice[0].get(1).cloned().flatten();
            assert_eq!(inside.is_some(), share < 0.4, "{share}: {choice:?}");
            assert!(inside.is_none() || rows.len() <= SPREAD);
        }
    }

    #[test]
    fn samples_of_long_results_are_short() {
        let text = "entry f [n] (xs: [n + 63]f32) : [n]f32 = slide 64 1 xs |> map (reduce (+) 0)";
        let entry =
            check_entry(&Source::new("f.pat", text), None).expect("the program is well-typed");
        let n = 1 << 20;
        let sizes = Sizes::from_iter([("n".to_owned(), n as u64)]);
        let inputs = [Value::floats(F32, &[n + 63], &vec![1.0; n + 63])];
        let c = Compiled::new(&entry, &sizes, &inputs).expect("it has a value on its inputs");
        let choice = sample(&c, 5e7).expect("the budget does not allow the whole");
        let rows = choice[0][0].as_deref().expect("elements are left out");
        assert_eq!((rows.len(), rows[0], rows[rows.len() - 1]), (MOST, 0, n - 1));
    }

    /// Whatever is between the result and the inputs, a sample costs little of the whole.
    #[test]
    fn samples_reach_through_windows_and_turned_rows() {
        let window = "def window op z w xs = slide w 1 xs |> map (reduce op z)
            entry f [n] (xs: [n]f32) : [n]f32 =
              let peak = map abs xs |> pad 15 15 0.0 |> window max 0.0 31
              in pad 7 7 clamp peak |> window (+) 0.0 15 |> map (/ 15.0)";
        let turned = "entry f [n] (xs: [n]f32) : [n / 64][64]f32 =
            let unit c = let r = rsqrt (1e-12 + reduce (+) 0 (map (\\x -> x * x) c)) in map (* r) c
            in split 64 xs |> transpose |> map unit |> transpose";
        let n = 1 << 16;
        let by_index =
            "entry f [n] (xs: [n]f32) : [n]f32 = generate n (\\i -> xs[i] + xs[n - 1 - i])";
        for text in [window, turned, by_index] {
            let source = Source::new("f.pat", text);
            let entry = check_entry(&source, None).expect("the program is well-typed");
            let sizes = Sizes::from_iter([("n".to_owned(), n as u64)]);
            let inputs = [Value::floats(F32, &[n], &vec![1.0; n])];
            let c = Compiled::new(&entry, &sizes, &inputs).expect("it has a value on its inputs");
            let whole = c.operations(&c.whole());
            let choice = sample(&c, whole / 20.0).expect("the budget does not allow the whole");
            assert!(c.operations(&choice) <= whole / 20.0, "{text}");
        }
    }

    #[test]
    fn what_has_no_rows_is_computed_whole() {
        let c = compiled("reduce (+) 0 (join A)");
        assert!(sample(&c, 100.0).is_none());
        let c = compiled("scan (+) 0 (join A)");
        assert!(sample(&c, 100.0).is_none());
    }

    #[test]
    fn elements_are_found_in_the_whole() {
        let c = compiled(PRODUCT);
        let whole = c.run(&c.whole()).expect("it has a value on its inputs").to_floats();
        let choice = sample(&c, 20_000.0).expect("a sample is smaller than the whole");
        let at = places(&[40, 50], &choice[0]).expect("elements are left out");
        let some = c.run(&choice).expect("it has a value on its inputs").to_floats();
        assert_eq!(some, at.iter().map(|i| whole[*i]).collect::<Vec<_>>());
        for i in [0, 49, 50, 1234, 1999] {
            assert_eq!(
                c.run(&only(&c, 0, i)).expect("it has a value on its inputs").to_floats(),
                [whole[i]]
            );
        }
    }
}
