//! Compares rule sets on a program: the size of the e-graph, the candidates, and the best time.

use super::{Observer, Program, Request, Session};
use crate::diag::Result;
use crate::rules::RuleSet;
use crate::saturate::{self, Report};

/// The result of a program under one rule set.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Outcome {
    /// The report of the saturation.
    pub report: Report,
    /// Number of candidates drawn.
    pub candidates: usize,
    /// Number of different skeletons among the candidates.
    pub skeletons: usize,
    /// Number of candidates for which kernels were generated.
    pub lowered: usize,
    /// The shortest predicted time, in microseconds.
    pub predicted_us: f64,
    /// The median time of the best candidate, in microseconds, if kernels were measured.
    pub measured_us: Option<f64>,
    /// The best term.
    pub best: String,
}

impl Session {
    /// Optimises a program under the given rules in place of the session's.
    ///
    /// # Errors
    /// As [`Session::optimize`], which also fails when no term is found.
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

    /// Saturates a program under a set of rules, without extraction.
    ///
    /// # Errors
    /// When the program or a size is wrong, or a rule makes an ill-typed term.
    pub fn figures(&self, rules: &RuleSet, program: &Program, request: &Request) -> Result<Report> {
        let sizes = super::inputs::sizes(program, request)?;
        let forms = self.float.forms(&program.elaborate(&sizes)?);
        Ok(saturate::saturate(&forms, rules, &self.limits)?.report)
    }
}
