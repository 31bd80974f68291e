//! Makes a counterexample small: first draws other instances, smallest first, then simplifies the functions
//! and the input of the best one.

use super::instance::{Instance, Plan, Scale, Verdict};
use crate::calculus::sample::{self, Rng};

/// Instances that are tried at each scale.
const TRIES: usize = 200;

/// Returns the smallest instance found on which the sides still differ.
pub(super) fn shrink(plan: &Plan, found: Instance, rng: &mut Rng) -> Instance {
    let longest = found.sizes.values().copied().max().unwrap_or(0).min(24);
    let mut best = found;
    'scales: for plain in [true, false] {
        for most in 0..=longest {
            let mut smaller: Option<Instance> = None;
            for _ in 0..TRIES {
                let Some(i) = plan.draw(rng, Scale { most, plain }) else { continue };
                if fails(plan, &i) && smaller.as_ref().is_none_or(|s| cost(&i) < cost(s)) {
                    smaller = Some(i);
                }
            }
            if let Some(i) = smaller {
                if cost(&i) < cost(&best) {
                    best = i;
                }
                break 'scales;
            }
        }
    }
    for _ in 0..TRIES {
        let other = plan.retiled(rng, &best);
        best = other.filter(|i| cost(i) < cost(&best) && fails(plan, i)).unwrap_or(best);
    }
    while let Some(simpler) = step(plan, &best) {
        best = simpler;
    }
    best
}

fn fails(plan: &Plan, i: &Instance) -> bool {
    matches!(plan.judge(i), Verdict::Differs(..))
}

/// A measure of how hard an instance is to read.
fn cost(i: &Instance) -> (u64, usize, usize) {
    let sizes = i.sizes.values().sum();
    let types: usize = i.types.values().map(|t| t.to_string().len()).sum();
    let functions: usize = i.functions.values().map(|f| f.to_string().len()).sum();
    (sizes, types + functions, i.input.to_string().len())
}

/// Returns a simpler instance that still fails.
fn step(plan: &Plan, i: &Instance) -> Option<Instance> {
    let length =
        |i: &Instance| -> usize { i.functions.values().map(|f| f.to_string().len()).sum() };
    for name in i.functions.keys() {
        for f in sample::simple_functions(i.functions[name].ty()) {
            let mut next = i.clone();
            next.functions.insert(name.clone(), f);
            if length(&next) < length(i) && fails(plan, &next) {
                return Some(next);
            }
        }
    }
    for input in sample::simpler(&i.input) {
        let next = Instance { input, ..i.clone() };
        if fails(plan, &next) {
            return Some(next);
        }
    }
    None
}
