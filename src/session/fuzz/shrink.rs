//! Makes a failing program smaller: part by part, and with smaller sizes, as long as it fails in the same way.

use super::case::Case;
use super::finding::Failure;
use super::trial::Trial;
use crate::diag::Source;
use crate::lang;
use crate::lang::smaller::smaller;
use std::sync::Arc;
use std::time::Instant;

/// Candidates that are tried of each smaller program: the one that fails is not the same any more.
const CANDIDATES: usize = 24;

/// The smallest program found that fails as this one does, and what it fails with.
pub(super) fn shrink(
    trial: &mut Trial,
    source: Arc<Source>,
    case: Case,
    failure: Failure,
) -> (Arc<Source>, Case, Failure) {
    let begun = Instant::now();
    let most = trial.shared.fuzz.shrink;
    let mut best = (source, case, failure);
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
            if let Some(f) = outcome.failures.into_iter().find(|f| f.kind == best.2.kind) {
                better = Some((less, case, f));
                break;
            }
        }
        match better {
            Some(found) => best = found,
            None => break,
        }
    }
    let (source, case, failure) = best;
    let text = lang::format(&source).unwrap_or_else(|_| source.text.clone());
    (Source::new(source.name.clone(), text), case, failure)
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
