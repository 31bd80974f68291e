//! The trial of one program: checks the program, compiles it under some of the rules, and compares some candidates
//! with the interpreter.

use super::case::Case;
use super::finding::{Failure, Kind};
use super::{Shared, modest};
use crate::calculus::elaborate;
use crate::calculus::eval;
use crate::calculus::interp;
use crate::calculus::text::{Context, read_term};
use crate::calculus::ty::Ty;
use crate::calculus::value::{Tolerance, Value, compare_values};
use crate::diag::{self, Code, Diagnostic, Limits, Result, Source};
use crate::extract;
use crate::kernel::{self, Options};
use crate::rules::{Library, RuleSet};
use crate::saturate::saturate_apart;
use crate::session::generate::Generator;
use crate::session::{Bound, Program, Request, inputs};
use crate::tune::reference::Reference;
use crate::tune::variant::{Variant, reason};
use crate::tune::worker::{Worker, WorkerError};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How many candidates are lowered at most for each one that is wanted, since some have no kernels.
const SPARE: usize = 4;
/// Programs that take the interpreter more operations are not compared.
const MOST_OPERATIONS: f64 = 8e6;
/// How long to wait for a simulator's complaints: they come on another channel than its answers, and may be late.
const LATE: Duration = Duration::from_millis(10);

/// How far the trial of a program came.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// It is not well-typed: why, and the message.
    Rejected(String, String),
    /// It has no value on its inputs, or the interpreter would take too long.
    NoValue,
    /// The compiler has no kernels for it: why, and the message.
    Refused(String, String),
    /// It has kernels; `all_rules` if it had none under the random subset of the rules.
    Compiled { all_rules: bool },
    /// The compiler panicked or reported an internal error.
    Broken,
}

/// The outcome of a trial.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub text: String,
    pub stage: Stage,
    pub candidates: u64,
    pub too_large: u64,
    pub without_kernels: BTreeMap<String, u64>,
    pub failures: Vec<Failure>,
}

/// Runs trials, with the worker of one thread.
pub(super) struct Trial<'a> {
    pub shared: &'a Shared<'a>,
    pub worker: Option<&'a mut Worker>,
    /// When to run no further candidates of a program.
    pub until: Option<Instant>,
}

/// Why a program has no kernels.
type Refusal = Box<Diagnostic>;

/// The result of a compilation.
struct Compiled {
    variants: Vec<Variant>,
    without: BTreeMap<String, u64>,
}

impl Trial<'_> {
    /// Tries a program.
    pub fn run(&mut self, source: &Arc<Source>, case: &Case) -> Outcome {
        self.run_with(source, case, self.shared.fuzz.candidates)
    }

    /// Tries a program with at most `most` candidates.
    pub fn run_with(&mut self, source: &Arc<Source>, case: &Case, most: usize) -> Outcome {
        let mut outcome = Outcome {
            text: source.text.clone(),
            stage: Stage::Broken,
            candidates: 0,
            too_large: 0,
            without_kernels: BTreeMap::new(),
            failures: vec![],
        };
        let tried =
            panic::catch_unwind(AssertUnwindSafe(|| self.stages(source, case, most, &mut outcome)));
        match tried {
            Ok(Ok(stage)) => outcome.stage = stage,
            Ok(Err(failure)) => outcome.failures.push(internal(failure.to_string())),
            Err(panic) => outcome.failures.push(internal(text_of(panic.as_ref()))),
        }
        outcome
    }

    fn stages(
        &mut self,
        source: &Arc<Source>,
        case: &Case,
        most: usize,
        outcome: &mut Outcome,
    ) -> Result<Stage> {
        let program = match Program::check(source, None) {
            Ok(program) => program,
            Err(failure) => {
                let d = serious(failure)?;
                return Ok(Stage::Rejected(reason(&d), d.message));
            }
        };
        let request = Request {
            sizes: case.sizes.clone(),
            default: Some(Generator::Normal),
            seed: case.seed,
            ..Request::default()
        };
        let bound = match inputs::bind(&program, &request) {
            Ok(bound) => bound,
            Err(failure) => {
                serious(failure)?;
                return Ok(Stage::NoValue);
            }
        };
        let limits = &self.shared.session.limits;
        match interp::Compiled::new(&program.entry, &bound.sizes, &bound.values) {
            Ok(compiled) if compiled.operations(&compiled.whole()) <= MOST_OPERATIONS => {}
            Ok(_) => return Ok(Stage::NoValue),
            Err(failure) => {
                serious(failure)?;
                return Ok(Stage::NoValue);
            }
        }
        // The loops of a random program may never end, so the wait for its result is limited.
        let mut reference =
            Reference::for_search(&program.entry, &bound.sizes, &bound.values, limits);
        if let Err(failure) = reference.wait(|| true) {
            serious(failure)?;
            return Ok(Stage::NoValue);
        }
        if reference.is_deferred() {
            return Ok(Stage::NoValue);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(case.seed);
        let some = self.some_rules(&mut rng);
        let all = self.shared.session.rules.offered(&self.shared.device.capabilities.names());
        let (few, more) = (modest(limits, 1), modest(limits, 4));
        let mut refusal = None;
        let term = match self.term(&program, case) {
            Ok(term) => term,
            Err(failure) => return Ok(refused(&serious(failure)?, source)),
        };
        // A program counts as refused only if it has no kernels under all rules and larger limits either.
        for (rules, limits) in [(&some, &few), (&all, &few), (&all, &more)] {
            match self.compile(&program, &term, rules, limits, most, &mut rng)? {
                Ok(compiled) => {
                    outcome.without_kernels = compiled.without;
                    outcome
                        .failures
                        .extend(compiled.variants.iter().filter_map(|v| changed_by_text(v, &term)));
                    self.compare(&program, bound, reference, compiled.variants, outcome)?;
                    return Ok(Stage::Compiled { all_rules: refusal.is_some() });
                }
                Err(d) => refusal = Some(d),
            }
        }
        let d = refusal.unwrap_or_else(|| Box::new(Diagnostic::error(Code::Internal, "no rules")));
        Ok(refused(&d, source))
    }

    /// Tests the operators of a program and returns the program as a term.
    fn term(&self, program: &Program, case: &Case) -> Result<elaborate::Program> {
        if !self.shared.session.trust_laws {
            program.check_laws(&case.sizes)?;
        }
        program.elaborate(&case.sizes)
    }

    /// Returns a random subset of the session's rules, sometimes with the rules of another theme.
    fn some_rules(&self, rng: &mut ChaCha8Rng) -> RuleSet {
        let session = self.shared.session;
        let mut rules = session.rules.clone();
        if rng.random_range(0..4) == 0
            && let Ok(library) = Library::shipped()
        {
            let themes = ["partials", "warp", "thesis", "primitive", "pairs"];
            let more = library.theme(themes[rng.random_range(0..themes.len())]);
            rules.extend(&more.unwrap_or_default());
            rules.retain(|r| session.float.allows(r.law));
        }
        let share = [0.0, 0.0, 0.05, 0.2, 0.5][rng.random_range(0..5)];
        let dropped: Vec<String> = rules
            .iter()
            .filter(|r| {
                // Without lowering rules a program has no candidates, so they are dropped less often.
                let share = if r.theme == "lowering" { share / 4.0 } else { share };
                rng.random_bool(share)
            })
            .map(|r| r.name.clone())
            .collect();
        rules.retain(|r| !dropped.contains(&r.name));
        rules.offered(&self.shared.device.capabilities.names())
    }

    /// Draws random candidates and generates their kernels.
    fn compile(
        &self,
        program: &Program,
        term: &elaborate::Program,
        rules: &RuleSet,
        limits: &Limits,
        most: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<std::result::Result<Compiled, Refusal>> {
        let shared = self.shared;
        let (device, model) = (&shared.device, &shared.model);
        let drawn = saturate_apart(&self.shared.session.float.forms(term), rules, limits).and_then(
            |graph| {
                let drawn = extract::candidates(&graph, &term.env, device, model, limits)?;
                Ok((graph, drawn.candidates))
            },
        );
        let (graph, found) = match drawn {
            Ok(drawn) => drawn,
            Err(failure) => return Ok(Err(Box::new(serious(failure)?))),
        };
        let refusal = match self.kernels(program, found, most, rng) {
            Ok(compiled) => return Ok(Ok(compiled)),
            Err(refusal) => refusal,
        };
        // As in a search, the candidates of last resort.
        let found = extract::defaults(&graph, &term.env, device, model, limits)?;
        let none = || Box::new(Diagnostic::error(Code::NoTerm, "no candidates were drawn"));
        let compiled = self.kernels(program, found, most, rng);
        Ok(compiled.map_err(|last| last.or(refusal).unwrap_or_else(none)))
    }

    /// Generates the kernels of some candidates; the error is that of the last candidate, if there is one.
    fn kernels(
        &self,
        program: &Program,
        mut found: Vec<extract::Candidate>,
        most: usize,
        rng: &mut ChaCha8Rng,
    ) -> std::result::Result<Compiled, Option<Refusal>> {
        let shared = self.shared;
        found.shuffle(rng);
        let options: Options = shared.session.options(&program.entry.name, &shared.device);
        let generator = kernel::Generator::new(&options);
        let mut out = Compiled { variants: vec![], without: BTreeMap::new() };
        let mut refusal = None;
        for (i, c) in found.iter().enumerate() {
            if out.variants.len() >= most || (!out.variants.is_empty() && i >= most * SPARE) {
                break;
            }
            match Variant::new(&c.term, &c.env, &c.skeleton, &generator, &shared.model) {
                Ok(v) if out.variants.iter().any(|o| o.hash == v.hash) => {}
                Ok(v) => out.variants.push(v),
                Err(d) => {
                    *out.without.entry(reason(&d)).or_default() += 1;
                    refusal = Some(d);
                }
            }
        }
        if out.variants.is_empty() { Err(refusal) } else { Ok(out) }
    }

    /// Runs the candidates, or evaluates their terms if there is no device, and compares their results.
    fn compare(
        &mut self,
        program: &Program,
        bound: Bound,
        mut reference: Reference,
        variants: Vec<Variant>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let simulator = self.shared.device.is_simulator();
        let Some(worker) = self.worker.as_deref_mut() else {
            return evaluate(program, &bound, &variants, outcome);
        };
        worker.give(Arc::new(bound.inputs));
        for v in variants {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let checked = worker.prepare(v.plan.clone()).and_then(|(id, _)| {
                let outputs = worker.check(id);
                worker.forget(id);
                Ok(outputs?.1)
            });
            let failed = |kind, says: String| {
                let env: String = v.env.iter().map(|(s, n)| format!(" {s}={n}")).collect();
                Failure {
                    kind,
                    says,
                    candidate: Some(format!("{}\n with{env}", v.term)),
                    kernels: Some(v.plan.source.clone()),
                }
            };
            match checked {
                Ok(outputs) => {
                    outcome.candidates += 1;
                    let verdict = reference.compare(outputs)?;
                    if let Some(c) = verdict.map(|v| v.comparison).filter(|c| !c.ok) {
                        outcome.failures.push(failed(Kind::Wrong, first(c.first, c.mismatches)));
                    }
                }
                // The kernel reports an error of the inputs, but the interpreter found a value: the kernel is wrong.
                Err(WorkerError::Worker(failure))
                    if failure.0.iter().any(|d| d.code == Code::Eval) =>
                {
                    outcome.candidates += 1;
                    let said = failure.0.first().map(|d| d.message.clone()).unwrap_or_default();
                    outcome.failures.push(failed(Kind::Wrong, said));
                }
                Err(WorkerError::Worker(failure)) => return Err(failure),
                Err(WorkerError::Interrupted) => return Ok(()),
                Err(WorkerError::Candidate(failure)) => match Kind::of(failure.class) {
                    None => outcome.too_large += 1,
                    Some(kind) => {
                        outcome.candidates += 1;
                        outcome.failures.push(failed(kind, failure.log));
                    }
                },
            }
            if simulator {
                thread::sleep(LATE);
                let said = worker.said();
                // A line such as "1 warning generated." is not a complaint about a kernel.
                let count = |l: &str| l.is_empty() || l.ends_with(" generated.");
                if !said.lines().all(count) {
                    outcome.failures.push(failed(Kind::Complaint, said));
                }
            }
        }
        Ok(())
    }
}

/// Makes the stage of a refused program: the reason, the notes and the text of the place.
fn refused(d: &Diagnostic, source: &Source) -> Stage {
    let place = d.labels.iter().find(|l| l.primary);
    let place = place.and_then(|l| source.text.get(l.span.range())).unwrap_or_default();
    let notes: String = d.notes.iter().map(|n| format!("\n{n}")).collect();
    Stage::Refused(reason(d), format!("{}{notes}\n{place}", d.message))
}

/// Evaluates the candidates' terms and compares their values.
fn evaluate(
    program: &Program,
    bound: &Bound,
    variants: &[Variant],
    outcome: &mut Outcome,
) -> Result<()> {
    let expected = interp::run(&program.entry, &bound.sizes, &bound.values)?;
    let terms = interp::terms(&program.entry, &bound.sizes);
    let names = program.entry.params.iter().map(|p| p.name.as_str().into());
    let inputs: eval::Inputs = names.zip(bound.values.iter().cloned()).collect();
    for v in variants {
        outcome.candidates += 1;
        let says = match eval::apply(&v.term, &v.env, &inputs, &Value::unit()) {
            Ok(got) => {
                let c = compare_values(&expected, &got, |ty| Tolerance::of(ty, terms));
                if c.ok {
                    continue;
                }
                first(c.first, c.mismatches)
            }
            Err(e) => e.to_string(),
        };
        let env: String = v.env.iter().map(|(s, n)| format!(" {s}={n}")).collect();
        outcome.failures.push(Failure {
            kind: Kind::Wrong,
            says: format!("the candidate's term: {says}"),
            candidate: Some(format!("{}\n with{env}", v.term)),
            kernels: None,
        });
    }
    Ok(())
}

/// Plans and the store keep terms as text. Returns a failure if a candidate's term is another one when it is read back.
fn changed_by_text(v: &Variant, program: &elaborate::Program) -> Option<Failure> {
    let inputs = program.inputs.iter().map(|(n, _, t)| (n.clone(), t.clone())).collect();
    let source = Source::new("<term>", v.term.to_string());
    let says = match read_term(&source, &Ty::Unit, &Context { inputs, variables: None }) {
        Ok(again) if again == v.term => return None,
        Ok(again) => format!("a term is read back as another one: {again}"),
        Err(failure) => format!("a term cannot be read back: {failure}"),
    };
    Some(Failure { candidate: Some(source.text.clone()), ..internal(says) })
}

fn first(first: Option<String>, mismatches: usize) -> String {
    format!("{} ({mismatches} elements differ)", first.unwrap_or_default())
}

fn internal(says: String) -> Failure {
    Failure { kind: Kind::Internal, says, candidate: None, kernels: None }
}

/// Returns the first diagnostic of an expected failure.
///
/// # Errors
/// The failure itself, if it is internal to patsat.
fn serious(failure: diag::Failure) -> Result<Diagnostic> {
    if failure.0.iter().any(|d| d.code == Code::Internal) {
        return Err(failure);
    }
    let first = failure.0.into_iter().next();
    Ok(first.unwrap_or_else(|| Diagnostic::error(Code::Internal, "a failure without a diagnostic")))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a panic: {}", text.unwrap_or_default())
}
