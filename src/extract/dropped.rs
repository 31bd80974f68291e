//! What extraction loses on the way to the candidates, counted by reason.

use crate::calculus::size::SizeError;
use std::collections::BTreeMap;

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// A way to choose a class in a context, before a whole term is known.
    Part,
    /// A whole term.
    Term,
    /// Values for the tile sizes of a term.
    Values,
}

impl Lost {
    /// Everything that can be lost, in the order of the search.
    pub const ALL: [Lost; 3] = [Lost::Part, Lost::Term, Lost::Values];

    /// Returns the word for several of them.
    pub fn text(self) -> &'static str {
        match self {
            Lost::Part => "parts",
            Lost::Term => "terms",
            Lost::Values => "values",
        }
    }
}

/// Why something is lost. What no context allows is not counted: it is no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The device, or the place in the term, gains nothing by the pattern.
    NoGain,
    /// The body of an unrolled map has a loop, which would be copied.
    LoopCopied,
    /// A stage that only maps would be stored although its reader could compute it.
    NotFused,
    /// The result of a stage does not fit in local memory, whatever its tiles are.
    StageTooLarge,
    /// A reduction in blocks ends in other work-items than those that have its accumulators.
    EndsElsewhere,
    /// There are more combinations of arguments than are tried.
    PartsUntried,
    /// Other choices for the same class and context have better estimates.
    PartsPastBeam,
    /// Other terms of the whole program have better estimates.
    TermsPastBeam,
    /// The term does not type-check when its operators of tiling are written out.
    IllTyped,
    /// Another choice is the same term, once `toGlobal` is left out.
    SameTerm,
    /// One work-item of a group would accumulate while the others wait.
    Idles,
    /// No values for the tile sizes meet all constraints.
    NoValues,
    /// A tile has no values to try.
    NoOptions,
    /// A tile, or a number of chunks, does not divide its size.
    NotDividing,
    /// A size has no value: a symbol in it has none, or it is too large.
    NoSize,
    /// Most of a tile would be padding.
    Padding,
    /// A group would have more work-items than the device allows.
    GroupTooLarge,
    /// A tile or slice has too few or too many work-items to be worth it.
    GroupUnsuited,
    /// The share of a work-item does not divide its tile, or its runs do not divide the share.
    UnevenShares,
    /// A loop that is unrolled is too long.
    UnrolledTooLong,
    /// Unrolled loops have too many operations.
    UnrolledTooLarge,
    /// Staged blocks do not fit in local memory.
    LocalMemory,
    /// Accumulators do not fit in registers.
    Registers,
    /// Other values have better scores of reuse.
    WorseScore,
    /// Other choices led to the same values.
    Same,
    /// There are more combinations of values than are tried.
    ValuesUntried,
}

impl Reason {
    /// Returns what is lost for this reason.
    pub fn lost(self) -> Lost {
        match self {
            Reason::NoGain
            | Reason::LoopCopied
            | Reason::NotFused
            | Reason::StageTooLarge
            | Reason::EndsElsewhere
            | Reason::PartsUntried
            | Reason::PartsPastBeam => Lost::Part,
            Reason::TermsPastBeam
            | Reason::IllTyped
            | Reason::SameTerm
            | Reason::Idles
            | Reason::NoValues => Lost::Term,
            Reason::NoOptions
            | Reason::NotDividing
            | Reason::NoSize
            | Reason::Padding
            | Reason::GroupTooLarge
            | Reason::GroupUnsuited
            | Reason::UnevenShares
            | Reason::UnrolledTooLong
            | Reason::UnrolledTooLarge
            | Reason::LocalMemory
            | Reason::Registers
            | Reason::WorseScore
            | Reason::Same
            | Reason::ValuesUntried => Lost::Values,
        }
    }

    /// Returns the reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Reason::NoGain => "nothing is gained by the pattern",
            Reason::LoopCopied => "a loop would be copied",
            Reason::NotFused => "a stage that only maps would be stored",
            Reason::StageTooLarge => "a stage does not fit in local memory",
            Reason::EndsElsewhere => "a reduction would end in other work-items",
            Reason::PartsUntried | Reason::ValuesUntried => "not tried: too many combinations",
            Reason::PartsPastBeam | Reason::TermsPastBeam => "past the beam",
            Reason::IllTyped => "does not type-check when written out",
            Reason::SameTerm => "the same as another",
            Reason::Idles => "work-items would idle",
            Reason::NoValues => "no values for its tile sizes",
            Reason::NoOptions => "a tile has no values to try",
            Reason::NotDividing => "a tile does not divide",
            Reason::NoSize => "a size has no value",
            Reason::Padding => "most of a tile would be padding",
            Reason::GroupTooLarge => "more work-items than a group has",
            Reason::GroupUnsuited => "too few or too many work-items for a group",
            Reason::UnevenShares => "work-items would have unequal shares",
            Reason::UnrolledTooLong => "a loop is too long to be unrolled",
            Reason::UnrolledTooLarge => "too many operations would be unrolled",
            Reason::LocalMemory => "more local memory than a group has",
            Reason::Registers => "more registers than a work-item has",
            Reason::WorseScore => "others promise more reuse",
            Reason::Same => "the same as others",
        }
    }
}

impl From<SizeError> for Reason {
    fn from(e: SizeError) -> Reason {
        match e {
            SizeError::Inexact(_) => Reason::NotDividing,
            SizeError::Unbound(_) | SizeError::Overflow(_) => Reason::NoSize,
        }
    }
}

/// Counts of what was lost, in words: first what, then why.
pub type Told = BTreeMap<String, BTreeMap<String, usize>>;

/// Counts of what was lost, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped(BTreeMap<Reason, usize>);

impl Dropped {
    /// Returns how much was lost for a reason.
    pub fn count(&self, reason: Reason) -> usize {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// Returns the reasons for which some of these were lost, with counts, the most frequent first.
    pub fn of(&self, lost: Lost) -> Vec<(Reason, usize)> {
        let mut out: Vec<(Reason, usize)> =
            self.0.iter().filter(|(r, _)| r.lost() == lost).map(|(r, n)| (*r, *n)).collect();
        // The sort is stable: equally frequent reasons stay in the order of their declaration.
        out.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        out
    }

    /// Returns the counts in words.
    pub fn told(&self) -> Told {
        let words = |lost| self.of(lost).into_iter().map(|(r, n)| (r.text().to_owned(), n));
        Lost::ALL.map(|lost| (lost.text().to_owned(), words(lost).collect())).into()
    }

    pub(super) fn add(&mut self, reason: Reason) {
        self.add_all(reason, 1);
    }

    pub(super) fn add_all(&mut self, reason: Reason, count: usize) {
        if count > 0 {
            // Combinations that are not tried may be more than a number holds.
            let sum = self.0.entry(reason).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    pub(super) fn extend(&mut self, others: &Dropped) {
        others.0.iter().for_each(|(reason, count)| self.add_all(*reason, *count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_by_what_is_lost() {
        let mut dropped = Dropped::default();
        dropped.add(Reason::Idles);
        dropped.add_all(Reason::NoValues, 2);
        dropped.add_all(Reason::Padding, 0);
        let mut all = Dropped::default();
        all.add(Reason::PartsPastBeam);
        all.extend(&dropped);
        assert_eq!(all.of(Lost::Term), [(Reason::NoValues, 2), (Reason::Idles, 1)]);
        assert_eq!((all.count(Reason::PartsPastBeam), all.count(Reason::Padding)), (1, 0));
        let told = all.told();
        assert_eq!(told["terms"]["no values for its tile sizes"], 2);
        assert_eq!((told["parts"]["past the beam"], told["values"].len()), (1, 0));
    }

    #[test]
    fn counts_that_no_number_holds_are_the_largest_number() {
        let mut dropped = Dropped::default();
        dropped.add_all(Reason::ValuesUntried, usize::MAX);
        dropped.add(Reason::ValuesUntried);
        assert_eq!(dropped.count(Reason::ValuesUntried), usize::MAX);
    }
}
