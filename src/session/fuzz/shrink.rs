//! Makes a failing program smaller: part by part, and with smaller sizes, as long as it fails in the same way.

use super::case::Case;
use super::trial::{Outcome, Trial};
use crate::diag::Source;
use crate::lang;
use crate::lang::smaller::smaller;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Candidates that are tried of each smaller program: the one that fails is not the same any more.
const CANDIDATES: usize = 24;

/// The smallest program found within a time for which `holds` gives something, as it does for this one.
pub(super) fn shrink<T>(
    trial: &mut Trial,
    first: (Arc<Source>, Case, T),
    most: Duration,
    holds: impl Fn(Outcome) -> Option<T>,
) -> (Arc<Source>, Case, T) {
    let begun = Instant::now();
    let mut best = first;
    loop {
        let mut better = None;
        let (source, case, _) = &best;
        let sizes = smaller_cases(case).into_iter().map(|c| (c.rewrite(&source.text), c));
        let parts = smaller(source).into_iter().map(|text| (text, case.clone()));
        for (text, mut case) in sizes.chain(parts) {
            if begun.elapsed() >= most {
                break;
            }
            let less = Source::new(source.name.clone(), text);
            // Sizes go with their names.
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
    let (source, case, what) = best;
    let text = lang::format(&source).unwrap_or_else(|_| source.text.clone());
    (Source::new(source.name.clone(), text), case, what)
}

/// The same with one size smaller.
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
