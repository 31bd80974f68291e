//! What a set of rules makes of a program: sizes of the e-graph, candidates, and how good they are.

use super::{Observer, Program, Request, Session};
use crate::diag::Result;
use crate::rules::RuleSet;
use crate::saturate::{self, Report};

/// What a set came to on a program.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Outcome {
    /// How saturation went.
    pub report: Report,
    /// Candidates drawn, and skeletons among them.
    pub candidates: usize,
    /// Different skeletons.
    pub skeletons: usize,
    /// Candidates for which kernels could be generated, of those that were tried.
    pub lowered: usize,
    /// The best prediction, in microseconds.
    pub predicted_us: f64,
    /// The best median, in microseconds, when kernels were measured.
    pub measured_us: Option<f64>,
    /// The best term.
    pub best: String,
}

impl Session {
    /// Optimises a program under another set of rules than the session's.
    ///
    /// # Errors
    /// As [`Session::optimize`]: that no term was found is an error too.
    pub fn outcome(
        &self,
        rules: &RuleSet,
        program: &Program,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> Result<Outcome> {
        let session = Session { rules: rules.clone(), shares: false, ..self.clone() };
        let o = session.optimize(program, request, observer)?;
        Ok(Outcome {
            candidates: o.counts.generated,
            skeletons: o.counts.skeletons,
            lowered: o.counts.lowered,
            predicted_us: o.ranking.iter().map(|b| b.variant.predicted_us).fold(f64::MAX, f64::min),
            measured_us: o.best.summary.map(|s| s.median_us),
            best: o.best.variant.term.to_string(),
            report: o.report,
        })
    }

    /// Saturates a program under a set of rules, and does no more.
    ///
    /// # Errors
    /// When the program or a size is wrong, or a rule makes an ill-typed term.
    pub fn figures(&self, rules: &RuleSet, program: &Program, request: &Request) -> Result<Report> {
        let sizes = super::inputs::sizes(program, request)?;
        let term = program.elaborate(&sizes)?.term;
        Ok(saturate::saturate(&term, rules, &self.limits)?.report)
    }
}
