//! Counts the outcomes of a fuzzing run.

use super::finding::{Finding, Kind};
use super::trial::{Outcome, Stage};
use serde::Serialize;
use std::collections::BTreeMap;

/// The largest number of programs that are kept for a reason.
const KEPT: usize = 12;

/// The programs that were refused for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reason {
    /// How many programs.
    pub count: u64,
    /// The shortest programs, each with the whole message.
    pub examples: Vec<(String, String)>,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Where candidates ran.
    pub device: String,
    /// The seed of the run.
    pub seed: u64,
    /// Programs that were tried.
    pub programs: u64,
    /// Programs that are well-typed.
    pub accepted: u64,
    /// Accepted programs without a reference: they have no value on their inputs, or the interpreter would take too
    /// long.
    pub no_value: u64,
    /// Accepted programs that the compiler refused under all rules.
    pub refused: u64,
    /// Accepted programs with kernels.
    pub compiled: u64,
    /// Compiled programs that had no kernels in the first attempt, under their subset of the rules.
    pub needed_all_rules: u64,
    /// Candidates that ran, or whose terms were evaluated if there is no device.
    pub candidates: u64,
    /// Candidates that exceeded the device's resources.
    pub too_large: u64,
    /// Failures by kind.
    pub wrong: BTreeMap<&'static str, u64>,
    /// Programs that are not well-typed, by reason.
    pub rejections: BTreeMap<String, Reason>,
    /// Refused programs, by reason.
    pub refusals: BTreeMap<String, Reason>,
    /// Candidates without kernels of programs that compile, by reason.
    pub without_kernels: BTreeMap<String, u64>,
    /// Folders of the findings.
    pub findings: Vec<String>,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// Whether the run was stopped early.
    pub interrupted: bool,
}

impl Tally {
    pub(super) fn new(device: String, seed: u64) -> Tally {
        Tally { device, seed, ..Tally::default() }
    }

    /// Returns whether there are no failures.
    pub fn is_clean(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Returns the number of programs per second.
    pub fn rate(&self) -> f64 {
        self.programs as f64 / self.seconds.max(1e-9)
    }

    /// Returns the reasons for refusals, the most frequent first.
    pub fn top_refusals(&self) -> Vec<(&str, &Reason)> {
        let mut all: Vec<_> = self.refusals.iter().map(|(why, r)| (why.as_str(), r)).collect();
        all.sort_by_key(|(_, r)| std::cmp::Reverse(r.count));
        all
    }

    /// Returns the text of `refused.md`: each reason for a refusal with its shortest programs.
    pub fn refusals_text(&self) -> String {
        let mut out = format!(
            "{} of {} well-typed programs are refused by the compiler (seed {}, {}).\n",
            self.refused, self.accepted, self.seed, self.device
        );
        for (why, r) in self.top_refusals() {
            out.push_str(&format!("\n## {} x {why}\n", r.count));
            for (text, message) in &r.examples {
                let message: Vec<String> = message.lines().map(|l| format!("    {l}")).collect();
                out.push_str(&format!("\n{}\n\n```\n{text}```\n", message.join("\n")));
            }
        }
        out
    }

    pub(super) fn count(&mut self, outcome: &Outcome) {
        self.programs += 1;
        let note = |reasons: &mut BTreeMap<String, Reason>, why: &str, message: &str| {
            let reason = reasons.entry(why.to_owned()).or_default();
            reason.count += 1;
            reason.examples.push((outcome.text.clone(), message.to_owned()));
            reason.examples.sort_by_key(|(text, _)| text.len());
            reason.examples.truncate(KEPT);
        };
        if let Stage::Rejected(why, message) = &outcome.stage {
            return note(&mut self.rejections, why, message);
        }
        self.accepted += 1;
        match &outcome.stage {
            Stage::Rejected(..) => {}
            Stage::NoValue => self.no_value += 1,
            Stage::Refused(why, message) => {
                self.refused += 1;
                note(&mut self.refusals, why, message);
            }
            Stage::Compiled { all_rules } => {
                self.compiled += 1;
                self.needed_all_rules += u64::from(*all_rules);
            }
            // Counted as a failure below.
            Stage::Broken => {}
        }
        self.candidates += outcome.candidates;
        self.too_large += outcome.too_large;
        for (why, n) in &outcome.without_kernels {
            *self.without_kernels.entry(why.clone()).or_default() += n;
        }
        for failure in &outcome.failures {
            *self.wrong.entry(failure.kind.name()).or_default() += 1;
        }
    }

    pub(super) fn found(&mut self, finding: &Finding) {
        self.findings.extend(finding.folder.as_ref().map(|f| f.display().to_string()));
    }

    /// Returns the number of failures of a kind.
    pub fn wrong_of(&self, kind: Kind) -> u64 {
        self.wrong.get(kind.name()).copied().unwrap_or_default()
    }
}
