//! Why the chosen term is the program: derivations, and their steps checked in the interpreter.

use super::inputs::{Request, sizes};
use super::program::{Program, Sizes};
use super::{Best, Float, Session};
use crate::calculus::term::Term;
use crate::calculus::text::{Context, read_term};
use crate::calculus::ty::Ty;
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result, Source};
use crate::saturate::Report;
use crate::saturate::explain::{Derivation, Explainer};
use crate::tune::event::{Event, Observer, Phase};

/// A derivation, and what it is of.
pub struct Explained {
    /// The entry.
    pub entry: String,
    /// The file.
    pub file: String,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// The device the term was chosen for.
    pub device: DeviceInfo,
    /// Hash of the rule set.
    pub rules: String,
    /// Which arithmetic may change.
    pub float: Float,
    /// How the saturation went that kept explanations.
    pub report: Report,
    /// The chosen candidate; none when a person gave the term.
    pub best: Option<Best>,
    /// From the program to the term.
    pub derivation: Derivation,
    /// What to tell a person.
    pub warnings: Vec<Diagnostic>,
}

impl Session {
    /// Why the best term for a program, or the one written in `goal`, is equal to it.
    ///
    /// # Errors
    /// Those of [`Session::optimize`]; [`Code::NotDerived`] when `goal` is no term that the rules derive.
    pub fn explain(
        &self,
        program: &Program,
        request: &Request,
        goal: Option<&str>,
        observer: &mut dyn Observer,
    ) -> Result<Explained> {
        let (device, best, mut warnings) = match goal {
            Some(_) => (self.target()?.0, None, vec![]),
            None => {
                let o = self.optimize(program, request, observer)?;
                (o.device, Some(o.best), o.warnings)
            }
        };
        let sizes = sizes(program, request)?;
        let elaborated = program.elaborate(&sizes)?;
        let written = goal.map(|text| {
            let inputs = elaborated.inputs.iter().map(|(n, _, t)| (n.clone(), t.clone())).collect();
            let context = Context { inputs, variables: None };
            read_term(&Source::new("--term", text), &Ty::Unit, &context)
        });
        let written: Option<Term> = written.transpose()?;
        observer.event(&Event::Phase(Phase::Saturate));
        let rules = self.rules.offered(&device.capabilities.names());
        let mut explainer = Explainer::new(&elaborated.term, &rules, &self.limits)?;
        let derivation = match (&written, &best) {
            (Some(goal), _) => explainer.derive_written(goal)?,
            (None, Some(best)) => {
                let compact = best.variant.compact.as_ref().unwrap_or(&best.variant.term);
                explainer.derive_candidate(compact, &best.variant.env)?
            }
            (None, None) => explainer.derive(&elaborated.term)?,
        };
        if !derivation.holds() {
            let text = "a step of the derivation could not be confirmed on terms alone";
            warnings.push(Diagnostic::warning(Code::RuleUnsound, text));
        }
        Ok(Explained {
            entry: program.entry.name.clone(),
            file: program.source.name.clone(),
            sizes,
            device,
            rules: self.rules.hash(),
            float: self.float,
            report: explainer.graph.report.clone(),
            best,
            derivation,
            warnings,
        })
    }
}
