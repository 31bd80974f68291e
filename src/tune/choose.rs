//! Chooses which of the candidates that a model has ranked are measured first.

use super::variant::Variant;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Share of the places that goes to the best variant of each shape.
const OF_ALIKE: f64 = 0.4;

/// A shape is left out if its best prediction is more than this many times the best of all.
const FAR: f64 = 4.0;

/// Variants predicted within this many times the best prediction may be the fastest, since models of kernels err by
/// about as much.
pub const NEAR: f64 = 1.5;

/// Splits ranked variants into the best ones and the rest. Chooses at most `count`, and at most `each` of one
/// skeleton. Some places go to the best variant of each shape, whatever its rank: a model that is wrong about one
/// variant of a shape (about the value of reuse, or how well latency is hidden) is wrong about all of them.
/// Variants that are not near the best prediction are chosen only as the best of their shape. Variants whose longest
/// kernels differ go before others: a measurement that differs only in what takes little time says little.
pub fn spread(ranked: Vec<Variant>, count: usize, each: usize) -> (Vec<Variant>, Vec<Variant>) {
    let ranking = |v: &Variant| Ranked {
        skeleton: v.skeleton.clone(),
        us: v.predicted_us,
        shape: words(&v.skeleton),
        longest: v.longest(),
    };
    let order: Vec<Ranked> = ranked.iter().map(ranking).collect();
    let chosen = choose(&order, count, each);
    let (mut taken, mut rest) = (vec![], vec![]);
    for (i, v) in ranked.into_iter().enumerate() {
        if chosen.contains(&i) { taken.push(v) } else { rest.push(v) }
    }
    (taken, rest)
}

/// What decides whether a variant is chosen.
struct Ranked {
    skeleton: String,
    /// Predicted time in microseconds.
    us: f64,
    /// The skeleton's shape.
    shape: String,
    /// Features of the longest kernel.
    longest: Option<u64>,
}

/// Returns indices into a ranking.
fn choose(ranked: &[Ranked], count: usize, each: usize) -> HashSet<usize> {
    let mut chosen = HashSet::new();
    let mut of_skeleton: HashMap<&str, usize> = HashMap::new();
    let best = ranked.iter().map(|r| r.us).fold(f64::INFINITY, f64::min);
    let (mut shapes, mut longest) = (HashSet::new(), HashSet::new());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    let most = (count as f64 * OF_ALIKE).ceil() as usize;
    for (i, r) in ranked.iter().enumerate() {
        if chosen.len() < most && r.us <= FAR * best && shapes.insert(&r.shape) {
            chosen.insert(i);
            longest.insert(r.longest);
            *of_skeleton.entry(&r.skeleton).or_default() += 1;
        }
    }
    for alike in [false, true] {
        for (i, r) in ranked.iter().enumerate() {
            let taken = of_skeleton.entry(&r.skeleton).or_default();
            let room = *taken < each && r.us <= NEAR * best && chosen.len() < count;
            if room && (alike || !longest.contains(&r.longest)) && chosen.insert(i) {
                longest.insert(r.longest);
                *taken += 1;
            }
        }
    }
    chosen
}

/// Returns the shape of a skeleton as text.
fn words(skeleton: &str) -> String {
    shape(skeleton).into_iter().collect::<Vec<_>>().join(" ")
}

/// Returns the shape of a skeleton: the set of its patterns, without their lengths and nesting.
pub fn shape(skeleton: &str) -> BTreeSet<&str> {
    let mut words = BTreeSet::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in skeleton.char_indices() {
        if depth == 0 && !c.is_alphanumeric() {
            words.extend((start < at).then(|| &skeleton[start..at]));
        }
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth > 0 || !c.is_alphanumeric() {
            start = at + c.len_utf8();
        }
    }
    words.extend((start < skeleton.len()).then(|| &skeleton[start..]));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(skeleton: &str, us: f64, longest: u64) -> Ranked {
        let (skeleton, shape, longest) = (skeleton.to_owned(), words(skeleton), Some(longest));
        Ranked { skeleton, us, shape, longest }
    }

    #[test]
    fn longest_kernels_differ() {
        // Two products of which each has three cheap stages after it.
        let of = |k: u64| (0..3).map(move |i| (format!("red[{k}] seq[{i}]"), k));
        let ranked: Vec<Ranked> = (of(0).chain(of(1)).zip(100..))
            .map(|((s, k), us)| ranking(&s, f64::from(us), k))
            .collect();
        let sorted = |count| {
            let mut all: Vec<usize> = choose(&ranked, count, 1).into_iter().collect();
            all.sort_unstable();
            all
        };
        assert_eq!(sorted(2), [0, 3]);
        assert_eq!(sorted(3), [0, 1, 3]);
    }

    #[test]
    fn shapes_are_patterns_without_lengths() {
        let of = |s| shape(s).into_iter().collect::<Vec<_>>();
        assert_eq!(
            of("wrg0[n^/n.t0](lcl0[n.t0](red[k] seq[m])) stage"),
            ["lcl0", "red", "seq", "stage", "wrg0"]
        );
        assert_eq!(of("glb0[(k^/k.v).t0](glb0[n]) pack[k]"), ["glb0", "pack"]);
        assert_eq!(of("seq"), ["seq"]);
        assert_eq!(shape(""), BTreeSet::new());
    }

    #[test]
    fn every_shape_has_a_chance_and_no_skeleton_more_than_its_share() {
        let mut ranked = vec![];
        ranked.extend([("glb0[a](red[k])", 1.0); 4]);
        ranked.extend([("glb0[b](red[k])", 1.1); 4]);
        ranked.extend([("wrg0[a](lcl0[b])", 3.0); 2]);
        ranked.extend([("seq[a]", 5.0); 2]);
        let ranked: Vec<Ranked> =
            (ranked.into_iter().zip(0..)).map(|((s, us), k)| ranking(s, us, k)).collect();
        let sorted = |count, each| {
            let mut all: Vec<usize> = choose(&ranked, count, each).into_iter().collect();
            all.sort_unstable();
            all
        };
        // The other shape is chosen, the one that is too far from the best is not, and the remaining places go to
        // the best.
        assert_eq!(sorted(5, 2), [0, 1, 4, 5, 8]);
        // A single place goes to the best. Further places are not filled with variants that are far from it.
        assert_eq!(sorted(1, 2), [0]);
        assert_eq!(sorted(20, 2), [0, 1, 4, 5, 8]);
        assert_eq!(sorted(20, 9), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
