//! Saves the stages of terms that are no candidates.
//!
//! A term of several stages is none if one of its stages has no values for its tiles, or lets work-items idle. Another stage of
//! it may occur in no other term, since each stage is only kept in one or a few combinations. So it takes its place in a term
//! that is a candidate.

use super::search::{self, Found};
use super::{Passed, idles, stages, written_out};
use crate::calculus::term::Term;
use std::collections::{HashMap, HashSet};

/// Terms that are candidates, for the stages of others.
#[derive(Default)]
pub(super) struct Salvage {
    kept: Vec<(Found, Term, Vec<Term>)>,
    /// The first kept term with each place, and the number of the stage there.
    places: HashMap<Passed, (usize, usize)>,
    /// The stages of kept terms, with their places.
    seen: HashSet<(Passed, Term)>,
}

impl Salvage {
    /// Adds a term that is a candidate.
    pub fn keep(&mut self, found: Found) {
        let Ok((frame, parts)) = stages::frame(&found.compact) else { return };
        for (k, (part, place)) in parts.iter().zip(found.stages.iter()).enumerate() {
            self.seen.insert((place.clone(), part.clone()));
            self.places.entry(place.clone()).or_insert((self.kept.len(), k));
        }
        self.kept.push((found, frame, parts));
    }

    /// Returns, for each stage that occurs in these terms and in no candidate, the candidate that has it in place of its own.
    pub fn of(&mut self, lost: &[Found]) -> Vec<Found> {
        let mut out = vec![];
        for found in lost {
            let Ok((_, parts)) = stages::frame(&found.compact) else { continue };
            if parts.len() < 2 {
                continue;
            }
            for (part, place) in parts.into_iter().zip(found.stages.iter()) {
                let Some((i, k)) = self.places.get(place).copied() else { continue };
                if idles(&part, false) || !self.seen.insert((place.clone(), part.clone())) {
                    continue;
                }
                let (beside, frame, stages) = &self.kept[i];
                let mut stages: Vec<&Term> = stages.iter().collect();
                stages[k] = &part;
                let Ok(compact) = stages::framed(frame, &stages) else { continue };
                let Ok(term) = written_out(&compact) else { continue };
                let skeleton = search::skeleton_text(&term);
                let (form, stages) = (beside.form, beside.stages.clone());
                out.push(Found { term, compact, skeleton, form, stages });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::Size;
    use crate::calculus::text::{Context, read_term};
    use crate::calculus::ty::Ty;
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    const ITEMS: &str = "join . mapGlb 0 (mapSeq abs) . split n.t0";
    const GROUPS: &str = "join . mapWrg 0 (mapLcl 0 abs) . split n.t0";

    fn found(text: &str, stages: [&str; 2]) -> Found {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        let compact = read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term");
        let passed = |given: &&str| Passed { read: None, given: (*given).to_owned() };
        let stages = stages.iter().map(passed).collect();
        Found { term: compact.clone(), compact, skeleton: String::new(), form: 0, stages }
    }

    #[test]
    fn stages_move_to_terms_with_their_place() {
        let mut salvage = Salvage::default();
        salvage.keep(found(&format!("{ITEMS} . {ITEMS} . xs"), ["last", "first"]));
        let lost = [
            found(&format!("{GROUPS} . {ITEMS} . xs"), ["last", "first"]),
            // The second stage is new, but computes something else.
            found(&format!("{GROUPS} . {GROUPS} . xs"), ["last", "other"]),
        ];
        let texts = |of: Vec<Found>| of.iter().map(|f| f.compact.to_string()).collect::<Vec<_>>();
        assert_eq!(texts(salvage.of(&lost)), [format!("{GROUPS} . {ITEMS} . xs")]);
        assert!(salvage.of(&lost).is_empty());
    }
}
