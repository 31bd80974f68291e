//! Shrinks a failing program: tries smaller sizes and replaces parts by smaller ones, as long as the program fails in
//! the same way.

use super::case::Case;
use super::trial::{Outcome, Trial};
use crate::diag::Source;
use crate::lang;
use crate::lang::smaller::smaller;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many candidates of each smaller program are tried. More than in the search, since the failing candidate changes
/// with the program.
const CANDIDATES: usize = 24;

/// Returns the smallest program found within the time `most` whose outcome still satisfies `holds`, with its case and
/// the value of `holds`.
pub(super) fn shrink<T>(
    trial: &mut Trial,
    first: (Arc<Source>, Case, T),
    most: Duration,
    holds: impl Fn(Outcome) -> Option<T>,
) -> (Arc<Source>, Case, T) {
    let until = Instant::now() + most;
    trial.until = Some(until);
    let mut best = first;
    loop {
        let mut better = None;
        let (source, case, _) = &best;
        let sizes = smaller_cases(case).into_iter().map(|c| (c.rewrite(&source.text), c));
        let parts = smaller(source).into_iter().map(|text| (text, case.clone()));
        for (text, mut case) in sizes.chain(parts) {
            if Instant::now() >= until {
                break;
            }
            let less = Source::new(source.name.clone(), text);
            // A smaller program may have fewer size parameters.
            let Ok(entry) = lang::check_entry(&less, None) else { continue };
            case.sizes.retain(|name, _| entry.sizes.contains(name));
            let less = Source::new(source.name.clone(), case.rewrite(&less.text));
            let outcome = trial.run_with(&less, &case, CANDIDATES);
            if let Some(what) = holds(outcome) {
                better = Some((less, case, what));
                break;
            }
        }
        match better {
            Some(found) => best = found,
            None => break,
        }
    }
    trial.until = None;
    let (source, case, what) = best;
    let text = lang::format(&source).unwrap_or_else(|_| source.text.clone());
    (Source::new(source.name.clone(), text), case, what)
}

/// Returns the cases in which one size is smaller.
fn smaller_cases(case: &Case) -> Vec<Case> {
    let mut out = vec![];
    for (name, &value) in &case.sizes {
        let mut less: Vec<u64> = [0, 1, 2, 3, value / 2, value.saturating_sub(1)].into();
        less.retain(|v| *v < value);
        less.sort_unstable();
        less.dedup();
        for v in less {
            let mut smaller = case.clone();
            smaller.sizes.insert(name.clone(), v);
            out.push(smaller);
        }
    }
    out
}
