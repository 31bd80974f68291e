//! Explanations: how the chosen term follows from the program, why a rule did not apply, and what each rule
//! contributed.

use super::inputs::{Request, sizes};
use super::program::{Program, Sizes};
use super::{Best, Float, Session};
use crate::calculus::term::Term;
use crate::calculus::text::{Context, read_term};
use crate::calculus::ty::Ty;
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Exit, Failure, Result, Source};
use crate::rules::Rule;
use crate::saturate::explain::{Derivation, Explainer, Outcome};
use crate::saturate::{Report, RuleStat};
use crate::tune::event::{Event, Observer, Phase};

/// A derivation, with the program and the device that it belongs to.
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
    /// The report of the saturation that recorded explanations.
    pub report: Report,
    /// The chosen candidate; `None` when the caller gave the term.
    pub best: Option<Best>,
    /// The steps from the program to the term.
    pub derivation: Derivation,
    /// Whether [`Observer::stop`] ended the search for the best candidate early.
    pub interrupted: bool,
}

/// Where a rule applied in a program, or why it did not.
pub struct WhyNot {
    /// The entry.
    pub entry: String,
    /// The file.
    pub file: String,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// Why the rule was left out from the start, if it was.
    pub left_out: Option<String>,
    /// Its matches and additions during saturation; `None` when it was left out.
    pub stat: Option<RuleStat>,
    /// Where it applied, or the place that came nearest.
    pub outcome: Outcome,
    /// The numbers of the best terms that are derived with it, counted from 1.
    pub in_best: Vec<usize>,
    /// How many of the best terms have a derivation.
    pub best: usize,
}

/// What one rule did in several programs.
#[derive(Clone, Debug)]
pub struct RuleUse {
    /// Its name.
    pub rule: String,
    /// Summed over the programs.
    pub stat: RuleStat,
    /// For each program, how many of its best terms are derived with the rule.
    pub in_best: Vec<usize>,
}

/// A program whose best terms were derived.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProgramUse {
    /// The file.
    pub program: String,
    /// The entry.
    pub entry: String,
    /// How many of its best terms have a derivation.
    pub best: usize,
}

/// What the rules did in several programs.
#[derive(Clone, Debug)]
pub struct RuleUses {
    /// The programs.
    pub programs: Vec<ProgramUse>,
    /// Every rule of the set, and the nesting of chains (`associate`).
    pub rules: Vec<RuleUse>,
}

/// A cache of derivations: each term is derived once.
struct Derived {
    explainer: Explainer,
    known: Vec<(Term, Option<Derivation>)>,
}

impl Derived {
    /// Returns the derivation of a candidate's term; `None` when it has none, as may happen if saturation stopped at a
    /// limit.
    fn of(&mut self, b: &Best) -> Result<Option<&Derivation>> {
        let term = b.variant.compact.as_ref().unwrap_or(&b.variant.term);
        let at = match self.known.iter().position(|(t, _)| t == term) {
            Some(at) => at,
            None => {
                let made = match self.explainer.derive(term) {
                    Ok(d) => Some(d),
                    Err(Failure(ds)) if ds.iter().all(|d| d.code == Code::NotDerived) => None,
                    Err(e) => return Err(e),
                };
                self.known.push((term.clone(), made));
                self.known.len() - 1
            }
        };
        Ok(self.known[at].1.as_ref())
    }
}

impl Session {
    /// Finds where a rule (of this session's set, or one that the float mode leaves out) applied in a program or where
    /// its left side came nearest to matching, and which of the `best` best terms are derived with it.
    ///
    /// # Errors
    /// Those of [`Session::optimize`], except that a program without kernels is accepted.
    pub fn why_not(
        &self,
        program: &Program,
        request: &Request,
        rule: &Rule,
        best: usize,
        observer: &mut dyn Observer,
    ) -> Result<WhyNot> {
        let (device, ranking) = match self.optimize(program, request, observer) {
            Ok(o) => (o.device, o.ranking),
            // The program may have no kernels because this rule did not apply.
            Err(Failure(ds)) if ds.iter().all(|d| d.code.exit() == Exit::Limitation) => {
                (self.target()?.0, vec![])
            }
            Err(e) => return Err(e),
        };
        let sizes = sizes(program, request)?;
        let rules = self.rules.offered(&device.capabilities.names());
        let left_out = match (&rule.needs, self.rules.get(&rule.name), rules.get(&rule.name)) {
            (.., Some(_)) => None,
            (Some(needs), Some(_), None) => {
                Some(format!("{} lacks the capability `{needs}`", device.label()))
            }
            _ => Some(format!("it is {}, and the float mode is {}", rule.law, self.float.name())),
        };
        observer.event(&Event::Phase(Phase::Explain));
        let forms = self.float.forms(&program.elaborate(&sizes)?);
        let explainer = Explainer::new(&forms, &rules, &self.limits)?;
        let stat = explainer.graph.report.rules.get(&rule.name).copied();
        let outcome = explainer.why_not(rule)?;
        let mut derived = Derived { explainer, known: vec![] };
        let (mut in_best, mut looked_at) = (vec![], 0);
        for (i, b) in ranking.iter().take(best).enumerate() {
            if let Some(d) = derived.of(b)? {
                looked_at += 1;
                in_best.extend(d.uses(&rule.name).then_some(i + 1));
            }
        }
        Ok(WhyNot {
            entry: program.entry.name.clone(),
            file: program.source.name.clone(),
            sizes,
            left_out,
            stat,
            outcome,
            in_best,
            best: looked_at,
        })
    }

    /// Counts what each rule did in the saturation of these programs, and how many of their `best` best terms are
    /// derived with it.
    ///
    /// # Errors
    /// Those of [`Session::optimize`].
    pub fn rule_uses(
        &self,
        programs: &[(Program, Request)],
        best: usize,
        observer: &mut dyn Observer,
    ) -> Result<RuleUses> {
        let mut out = RuleUses { programs: vec![], rules: vec![] };
        for (i, (program, request)) in programs.iter().enumerate() {
            let optimized = self.optimize(program, request, observer)?;
            let rules = self.rules.offered(&optimized.device.capabilities.names());
            let explainer = Explainer::new(&optimized.forms, &rules, &self.limits)?;
            let mut derived = Derived { explainer, known: vec![] };
            let best: Vec<&Best> = optimized.ranking.iter().take(best).collect();
            out.programs.push(ProgramUse {
                program: program.source.name.clone(),
                entry: program.entry.name.clone(),
                best: 0,
            });
            let run = optimized.report.rules.keys().map(String::as_str);
            for name in run.chain(self.rules.iter().map(|r| r.name.as_str())) {
                if !out.rules.iter().any(|r| r.rule == name) {
                    let in_best = vec![0; programs.len()];
                    let (rule, stat) = (name.to_owned(), RuleStat::default());
                    out.rules.push(RuleUse { rule, stat, in_best });
                }
            }
            for r in &mut out.rules {
                if let Some(stat) = optimized.report.rules.get(&r.rule) {
                    r.stat.add(stat);
                }
            }
            for b in best {
                let Some(d) = derived.of(b)? else { continue };
                out.programs[i].best += 1;
                for r in out.rules.iter_mut().filter(|r| d.uses(&r.rule)) {
                    r.in_best[i] += 1;
                }
            }
        }
        Ok(out)
    }

    /// Derives the best term of a program, or the term in `goal`, from the program.
    ///
    /// # Errors
    /// Those of [`Session::optimize`]; [`Code::NotDerived`] when the rules do not derive `goal`.
    pub fn explain(
        &self,
        program: &Program,
        request: &Request,
        goal: Option<&str>,
        observer: &mut dyn Observer,
    ) -> Result<Explained> {
        let (device, best, interrupted) = match goal {
            Some(_) => (self.target()?.0, None, false),
            None => {
                let o = self.optimize(program, request, observer)?;
                (o.device, Some(o.best), o.interrupted)
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
        observer.event(&Event::Phase(Phase::Explain));
        let rules = self.rules.offered(&device.capabilities.names());
        let mut explainer = Explainer::new(&self.float.forms(&elaborated), &rules, &self.limits)?;
        let derivation = match (&written, &best) {
            (Some(goal), _) => explainer.derive_written(goal)?,
            (None, Some(best)) => {
                let compact = best.variant.compact.as_ref().unwrap_or(&best.variant.term);
                explainer.derive_candidate(compact, &best.variant.term, &best.variant.env)?
            }
            (None, None) => explainer.derive(&elaborated.term)?,
        };
        if !derivation.holds() {
            let text = "a step of the derivation was not confirmed on terms alone";
            observer.event(&Event::Warning(&Diagnostic::warning(Code::StepFails, text)));
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
            interrupted,
        })
    }
}
