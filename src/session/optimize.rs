//! Finds the best kernels of a program: saturates an e-graph, draws candidates, and ranks them by the cost model or by
//! measurement.

use super::answer::Stored;
use super::graph::Graph;
use super::inputs::{Bound, Expected, Request, bind, expected, sizes};
use super::program::{Program, Sizes};
use super::race::{Finish, Racer, add_yardstick, best, field, race};
use super::rules::own_rules;
use super::run::Execute;
use super::whole::Whole;
use super::work::{Work, work};
use super::{Device, Session, memory};
use crate::calculus::elaborate;
use crate::calculus::term::Term;
use crate::device::DeviceInfo;
use crate::device::cost_model::Choice;
use crate::diag::{Code, Diagnostic, Failure, Limits, Result};
use crate::extract;
use crate::kernel::{self, Options, Schedule};
use crate::opencl::yardstick::Traffic;
use crate::saturate::{Report, Saturated};
use crate::tune::event::{Event, Observer, Phase};
use crate::tune::reference::{Checked, Reference};
use crate::tune::search::{Counts, Found, Search, counts_of, not_kept, search};
use crate::tune::statistics::Summary;
use crate::tune::store::{Fate, Key, Record, Store};
use crate::tune::strategy::Strategy;
use crate::tune::variant::{Pool, Variant};
use crate::tune::worker::{FailureClass, Worker};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// Time spent in each phase, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// Elaborating and rewriting.
    pub saturate_ms: f64,
    /// Drawing candidates.
    pub extract_ms: f64,
    /// Generating kernels and predicting their times.
    #[serde(default)]
    pub generate_ms: f64,
    /// The driver's compiler.
    pub compile_ms: f64,
    /// Checking and timing.
    pub measure_ms: f64,
    /// Timing the best kernel beside yardsticks.
    #[serde(default)]
    pub compare_ms: f64,
    /// The whole run.
    pub total_ms: f64,
}

/// The best kernel's time and the device's bandwidth, measured in the same run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// Median time of the kernel, in microseconds, interleaved with the yardsticks.
    pub median_us: f64,
    /// The device's copy bandwidth over as many bytes as the program reads, in GB/s.
    pub copy_gb_per_s: Option<f64>,
    /// Its read bandwidth, in GB/s.
    pub read_gb_per_s: Option<f64>,
}

/// A candidate in the ranking.
#[derive(Clone, Debug)]
pub struct Best {
    /// The candidate's kernels.
    pub variant: Arc<Variant>,
    /// Its times, if it was measured.
    pub summary: Option<Summary>,
    /// The median time of each of its kernels in microseconds; empty if they were not timed in this run.
    pub kernels_us: Vec<f64>,
    /// Largest relative error against the reference, if it was measured.
    pub max_rel_err: Option<f64>,
}

/// The result of optimising a program.
pub struct Optimized {
    /// The entry.
    pub entry: String,
    /// The file.
    pub file: String,
    /// Value of each size parameter.
    pub sizes: Sizes,
    /// The device that it runs on, or is predicted for.
    pub device: DeviceInfo,
    /// The cost model, and why it was chosen.
    pub model: Choice,
    /// Hash of the rule set.
    pub rules: String,
    /// Which arithmetic may change.
    pub float: super::Float,
    /// The program as a term, and its other forms.
    pub forms: Vec<Term>,
    /// The report of the saturation.
    pub report: Report,
    /// The e-graph; `None` when the answer is from the tuning store.
    pub saturated: Option<Saturated>,
    /// The best candidate: the first of the ranking.
    pub best: Best,
    /// The best few, best first: measured ones, or by prediction when nothing was measured.
    pub ranking: Vec<Best>,
    /// How many candidates at the head of the ranking tie: their times are within the measurement noise.
    pub ties: usize,
    /// Counts of the candidates by outcome.
    pub counts: Counts,
    /// The least number of bytes and operations that the program needs.
    pub work: Work,
    /// The comparison with the device's bandwidth.
    pub shares: Option<Shares>,
    /// How results were checked, if the interpreter computed only a sample of them.
    pub checked: Option<Checked>,
    /// Time spent.
    pub timings: Timings,
    /// Whether [`Observer::stop`] ended the search early.
    pub interrupted: bool,
    /// The earlier search that gave this result, if the answer is from the tuning store.
    pub stored: Option<Stored>,
    /// Warnings for the user.
    pub warnings: Vec<Diagnostic>,
}

/// A program rewritten for a device, with its candidates: the input of both ranking and measuring.
pub(super) struct Rewritten {
    pub device: DeviceInfo,
    pub model: Choice,
    pub program: elaborate::Program,
    pub saturated: Saturated,
    pub drawn: extract::Drawn,
    pub timings: Timings,
    pub warnings: Vec<Diagnostic>,
}

impl Rewritten {
    /// Returns the pool of the candidates. `limits` are those of extraction.
    pub(super) fn pool<'a>(&'a self, options: &'a Options, limits: &'a Limits) -> Pool<'a> {
        let (env, model) = (&self.program.env, &self.model.model);
        let defaults = move || extract::defaults(&self.saturated, env, &self.device, model, limits);
        Pool::new(&self.drawn.candidates, env, options, model)
            .with_values(&self.drawn.values)
            .with_defaults(defaults)
    }
}

impl Session {
    /// Finds the best kernels for a program.
    ///
    /// Without a device, the cost model ranks the candidates. With one, up to `budget` candidates are built, compared
    /// with the interpreter and timed; inputs that `request` does not give are then generated only if it names a
    /// default generator. The stored answer of an earlier search with at least this budget is returned without a
    /// search, unless [`Session::anew`] is set.
    ///
    /// # Errors
    /// When the program or its inputs are wrong, no candidate survives, or there is no such device.
    pub fn optimize(
        &self,
        program: &Program,
        request: &Request,
        observer: &mut dyn Observer,
    ) -> Result<Optimized> {
        let begun = Instant::now();
        let expected = expected(program, request)?;
        if self.device == Device::None || self.budget == 0 || self.strategy == Strategy::Model {
            let sizes = sizes(program, request)?;
            let rewritten = self.rewrite(program, &sizes, observer)?;
            return self.ranked(program, (sizes, expected), rewritten, begun, observer);
        }
        let sizes = sizes(program, request)?;
        if let Some((answer, verified)) = self.answered(program, &sizes, begun)?
            && (verified || self.confirmed(program, request, &answer, observer)?)
        {
            for warning in &answer.warnings {
                observer.event(&Event::Warning(warning));
            }
            return Ok(answer);
        }
        let (device, _) = self.target()?;
        memory::check_device(program, &sizes, &device)?;
        let bound = bind(program, request)?;
        self.measured(program, (bound, expected), begun, observer)
    }

    /// Returns what lowering decided for the best kernels, as a text for people.
    ///
    /// # Errors
    /// When this version generates no kernels for the term of a stored answer.
    pub fn schedule(&self, program: &Program, found: &Optimized) -> Result<Schedule> {
        let (variant, options) =
            (&found.best.variant, self.options(&program.entry.name, &found.device));
        Ok(kernel::schedule(&variant.term, &variant.env, &options).map_err(|d| *d)?)
    }

    /// Runs the kernels of an imported answer and returns whether their result is right.
    fn confirmed(
        &self,
        program: &Program,
        request: &Request,
        answer: &Optimized,
        observer: &mut dyn Observer,
    ) -> Result<bool> {
        let (device, sizes) = (&answer.device, &answer.sizes);
        memory::check_device(program, sizes, device)?;
        let variant = &answer.best.variant;
        let once = Execute { repeat: Some(0), ..Execute::default() };
        let ran = self.first_use(program, request, (device, sizes), variant, once, observer)?;
        Ok(ran.is_some())
    }

    /// Rewrites a program and draws candidates.
    pub(super) fn rewrite(
        &self,
        program: &Program,
        sizes: &Sizes,
        observer: &mut dyn Observer,
    ) -> Result<Rewritten> {
        let (device, model) = self.target()?;
        let mut warnings = self.about_model(&model, &device);
        if !self.trust_laws {
            warnings.extend(program.check_laws(sizes)?);
        }
        observer.event(&Event::Phase(Phase::Saturate));
        let Graph { program: elaborated, saturated, warnings: incomplete } =
            self.graph_for(program, sizes, &device, false)?;
        warnings.extend(incomplete);
        observer.event(&Event::Saturated(&saturated.report));
        for warning in &warnings {
            observer.event(&Event::Warning(warning));
        }
        observer.event(&Event::Phase(Phase::Extract));
        let begun = Instant::now();
        let drawn =
            extract::candidates(&saturated, &elaborated.env, &device, &model.model, &self.limits)
                .map_err(|Failure(ds)| {
                Failure(ds.into_iter().map(|d| program.at_entry(d)).collect())
            })?;
        let timings = Timings {
            saturate_ms: saturated.report.ms,
            extract_ms: ms(begun),
            ..Timings::default()
        };
        Ok(Rewritten { device, model, program: elaborated, saturated, drawn, timings, warnings })
    }

    /// Returns a note that says whether the measurements of an interrupted search are kept.
    pub fn kept(&self) -> String {
        match &self.store {
            Some(store) => format!(
                "{} keeps what was measured; the same command goes on from there",
                store.display()
            ),
            None => "there is no tuning store: what was measured is not kept".to_owned(),
        }
    }

    /// Returns a warning if there is no cost model for the device.
    pub(super) fn about_model(&self, model: &Choice, device: &DeviceInfo) -> Vec<Diagnostic> {
        if !model.fallback || self.device == Device::None {
            return vec![];
        }
        let text = format!("no cost model for {}", device.label());
        vec![Diagnostic::warning(Code::CostModel, text).note(model.why.clone())]
    }

    /// Returns the key of a program's measurements in the store.
    pub(super) fn key(&self, program: &Program, sizes: &Sizes, device: &DeviceInfo) -> Key {
        Key {
            program: program.hash(),
            entry: program.entry.name.clone(),
            sizes: sizes.iter().map(|(n, v)| (n.clone(), *v)).collect(),
            rules: self.rules.hash(),
            device: device.label(),
            driver: device.driver.clone(),
            tool: match self.unchecked {
                true => concat!(env!("CARGO_PKG_VERSION"), " unchecked").to_owned(),
                false => env!("CARGO_PKG_VERSION").to_owned(),
            },
            float: self.float.name().to_owned(),
            trust: self.trust(),
        }
    }

    /// Returns the `trust` field of a [`Key`]: what the session trusts without a test.
    fn trust(&self) -> String {
        let trusted = [
            (self.trust_laws, "laws"),
            (self.trust_rules && own_rules(&self.rules).is_ok_and(|own| !own.is_empty()), "rules"),
        ];
        let words: Vec<&str> = trusted.iter().filter(|t| t.0).map(|t| t.1).collect();
        words.join(" ")
    }

    /// Ranks the candidates by the cost model.
    fn ranked(
        &self,
        program: &Program,
        (sizes, expected): (Sizes, Expected),
        rewritten: Rewritten,
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<Optimized> {
        let options = self.options(&program.entry.name, &rewritten.device);
        let options = Options { expected, ..options };
        let mut pool = rewritten.pool(&options, &self.limits);
        let mut counts = drawn_counts(&rewritten.drawn);
        observer.event(&Event::Phase(Phase::Generate));
        let go_on = || !observer.stop();
        let mut drawn: Vec<Variant> = vec![];
        loop {
            drawn.extend(pool.draw_rounds(go_on));
            let again = drawn.is_empty() && pool.fall_back()?;
            if !again || observer.stop() {
                break;
            }
        }
        counts.lowered = drawn.len();
        counts_of(&pool, &mut counts);
        let generate_ms = pool.spent_ms();
        drop(pool);
        let ranking: Vec<Best> = drawn
            .into_iter()
            .map(|v| Best {
                variant: Arc::new(v),
                summary: None,
                kernels_us: vec![],
                max_rel_err: None,
            })
            .collect();
        let interrupted = observer.stop();
        if interrupted && ranking.is_empty() {
            let text = "interrupted before a kernel was generated";
            return Err(Diagnostic::error(Code::Interrupted, text).into());
        }
        self.done(program, sizes, rewritten, ranking, counts, begun, |o| {
            o.timings.generate_ms = generate_ms;
            o.interrupted = interrupted;
        })
    }

    /// Ranks the candidates by measurement.
    fn measured(
        &self,
        program: &Program,
        (bound, expected): (Bound, Expected),
        begun: Instant,
        observer: &mut dyn Observer,
    ) -> Result<Optimized> {
        let Bound { sizes, mut inputs, values, warnings: about_inputs } = bound;
        for warning in &about_inputs {
            observer.event(&Event::Warning(warning));
        }
        // The interpreter takes seconds for large inputs, so it runs while candidates are drawn and built.
        let mut reference = Reference::for_search(&program.entry, &sizes, &values, &self.limits);
        drop(values);
        let mut store = self.keeping(observer)?;
        let mut rewritten = self.rewrite(program, &sizes, observer)?;
        rewritten.warnings.extend(about_inputs);
        let work = work(program, &sizes, &rewritten.program.term, &rewritten.program.env)?;
        let device = rewritten.device.clone();
        let len = match self.shares {
            true => add_yardstick(&mut inputs, work.read_bytes, &device),
            false => 0,
        };
        let options = Options { expected, ..self.options(&program.entry.name, &device) };
        let mut pool = rewritten.pool(&options, &self.limits);
        let mut counts = drawn_counts(&rewritten.drawn);
        let given = Arc::new(inputs);
        let mut staff = self.start_staff(&device, given.clone())?;
        let worker = &mut staff.worker;
        // The worker's description also says what the device's compiler accepts.
        let device = worker.device()?;
        let key = self.key(program, &sizes, &device);
        if let Some(open) = &mut store {
            let about = Self::about(program, work, &device, &rewritten.model.model);
            if let Err(failure) = open.describe(&key, &about) {
                observer.event(&Event::Warning(&not_kept(failure)));
                store = None;
            }
        }
        let mut found = program.placed(search(
            Search {
                worker,
                crew: staff.crew.as_mut(),
                reference: &mut reference,
                store: store.as_mut().map(|s| (s, &key)),
                observer,
                budget: self.budget,
                anew: self.anew,
                strategy: self.strategy,
                seed: self.search_seed,
            },
            &mut pool,
            &mut counts,
        ))?;
        if !found.ranking.is_empty()
            && !observer.stop()
            && let Some(whole) = self.on_whole_numbers(program, &sizes, &given, observer)?
        {
            let store = store.as_mut().filter(|_| found.kept).map(|s| (s, &key));
            self.drop_wrong(&mut found, &mut counts, whole, &device, store, observer)?;
        }
        if found.ranking.is_empty() {
            let mut failure = nothing(program, &found, &counts);
            if found.interrupted {
                failure.0.iter_mut().for_each(|d| d.notes.push(self.kept()));
            }
            return Err(failure);
        }
        let ranking: Vec<Best> = found
            .ranking
            .iter()
            .map(|m| Best {
                variant: m.variant.clone(),
                summary: Some(m.summary),
                kernels_us: m.kernels_us.clone(),
                max_rel_err: Some(m.max_rel_err),
            })
            .collect();
        let comparing = Instant::now();
        let shares = if len > 0 && !observer.stop() {
            observer.event(&Event::Phase(Phase::Compare));
            shares(worker, &device, len, &ranking[0], work, observer)?
        } else {
            None
        };
        let compare_ms = comparing.elapsed().as_secs_f64() * 1e3;
        let generate_ms = pool.spent_ms();
        drop(pool);
        let optimized = self.done(program, sizes, rewritten, ranking, counts, begun, |o| {
            o.timings.generate_ms = generate_ms;
            o.device = device;
            o.shares = shares;
            o.ties = found.ties;
            o.checked = reference.checked();
            o.timings.compile_ms = found.compile_ms;
            o.timings.measure_ms = found.measure_ms;
            o.timings.compare_ms = compare_ms;
            o.interrupted = found.interrupted || observer.stop();
        })?;
        if let Some(store) = store.as_mut().filter(|_| !optimized.interrupted && found.kept)
            && let Err(failure) = self.conclude(store, &key, &optimized)
        {
            observer.event(&Event::Warning(&not_kept(failure)));
        }
        Ok(optimized)
    }

    /// Opens the store for writing. If it cannot be written, warns the observer, and the search continues without it.
    fn keeping(&self, observer: &mut dyn Observer) -> Result<Option<Store>> {
        let Some(path) = &self.store else { return Ok(None) };
        let failure = match Store::open(path) {
            Ok(store) if store.is_frozen() => {
                let d = Diagnostic::error(Code::StoreUnwritable, "it is read-only");
                observer
                    .event(&Event::Warning(&not_kept(d.note(path.display().to_string()).into())));
                return Ok(Some(store));
            }
            Ok(store) => return Ok(Some(store)),
            Err(failure) => failure,
        };
        match failure.0.iter().all(|d| d.code == Code::StoreUnwritable) {
            true => observer.event(&Event::Warning(&not_kept(failure))),
            false => return Err(failure),
        }
        Ok(None)
    }

    /// Removes the best candidate from the ranking as long as it gives a wrong result on whole numbers.
    fn drop_wrong(
        &self,
        found: &mut Found,
        counts: &mut Counts,
        mut whole: Whole,
        device: &DeviceInfo,
        mut store: Option<(&mut Store, &Key)>,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        // Without the interpreter, the second kernel is what the first is compared with.
        if whole.is_deferred()
            && let Some(second) = found.ranking.get(1)
        {
            self.wrong_on_whole_numbers(device, &second.variant, &mut whole, observer)?;
        }
        while let Some(first) = found.ranking.first()
            && !observer.stop()
            && let Some(wrong) =
                self.wrong_on_whole_numbers(device, &first.variant, &mut whole, observer)?
        {
            let class = FailureClass::Wrong;
            let text = wrong.first.unwrap_or_default();
            let log = format!("{} elements are wrong; {text}", wrong.mismatches);
            *counts.failed.entry(class.name().to_owned()).or_default() += 1;
            if let Some((open, key)) = &mut store {
                let failed = Record::of(&first.variant, Fate::Failed(class));
                let kept = open.record(key, &Record { log: Some(log.clone()), ..failed });
                if let Err(failure) = kept {
                    store = None;
                    found.kept = false;
                    observer.event(&Event::Warning(&not_kept(failure)));
                }
            }
            found.logs.entry(class.name().to_owned()).or_insert(log);
            found.ranking.remove(0);
            found.ties = found.ties.saturating_sub(1).max(1);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one result")]
    fn done(
        &self,
        program: &Program,
        sizes: Sizes,
        rewritten: Rewritten,
        ranking: Vec<Best>,
        counts: Counts,
        begun: Instant,
        finish: impl FnOnce(&mut Optimized),
    ) -> Result<Optimized> {
        let Rewritten { device, model, program: elaborated, saturated, timings, warnings, .. } =
            rewritten;
        let Some(best) = ranking.first().cloned() else {
            return Err(nothing(program, &Found::default(), &counts));
        };
        let work = work(program, &sizes, &elaborated.term, &elaborated.env)?;
        let mut out = Optimized {
            entry: program.entry.name.clone(),
            file: program.source.name.clone(),
            sizes,
            device,
            model,
            rules: self.rules.hash(),
            float: self.float,
            forms: self.float.forms(&elaborated),
            report: saturated.report.clone(),
            saturated: Some(saturated),
            best,
            ranking,
            ties: 1,
            counts,
            work,
            shares: None,
            checked: None,
            timings,
            interrupted: false,
            stored: None,
            warnings,
        };
        finish(&mut out);
        out.timings.total_ms = ms(begun);
        Ok(out)
    }
}

/// Times the best kernel with the yardsticks.
fn shares(
    worker: &mut Worker,
    device: &DeviceInfo,
    len: usize,
    first: &Best,
    work: Work,
    observer: &dyn Observer,
) -> Result<Option<Shares>> {
    let mut racers = field(worker, device, len, observer)?;
    racers.push(Racer {
        name: String::new(),
        plan: first.variant.plan.clone(),
        bytes: work.bytes,
        traffic: None,
    });
    let finishes = race(worker, &racers, &mut [], 9, observer)?;
    let own = finishes.iter().find(|f| f.traffic.is_none());
    let Some(Ok(summary)) = own.map(|f| &f.outcome) else { return Ok(None) };
    let of = |traffic: &[Traffic]| best(&finishes, traffic).and_then(Finish::gb_per_s);
    Ok(Some(Shares {
        median_us: summary.median_us,
        copy_gb_per_s: of(&[Traffic::Copy, Traffic::CopyNontemporal]),
        read_gb_per_s: of(&[Traffic::Read]),
    }))
}

/// The counts before any kernel is generated.
pub(super) fn drawn_counts(drawn: &extract::Drawn) -> Counts {
    Counts {
        terms: drawn.terms,
        generated: drawn.candidates.len(),
        skeletons: drawn.skeletons(),
        dropped: drawn.dropped.told(),
        ..Counts::default()
    }
}

pub(super) fn not_saturated(report: &Report, limits: &Limits) -> Diagnostic {
    let text = format!("saturation stopped early: {}", report.stop_reason);
    Diagnostic::warning(Code::NotSaturated, text)
        .note(format!(
            "after {} iterations, with {} nodes in {} classes",
            report.iterations.len(),
            report.nodes,
            report.classes
        ))
        .note(format!("the limits: {} iterations, {} nodes", limits.iterations, limits.nodes))
        .help("the best term may not be in the graph; leave out rules that feed themselves")
}

/// Makes the error that says why no candidate is left.
pub(super) fn nothing(program: &Program, found: &Found, counts: &Counts) -> Failure {
    if found.interrupted {
        let text = "interrupted before a candidate was measured";
        return Diagnostic::error(Code::Interrupted, text).into();
    }
    // If every candidate failed in the same way, this failure is the error.
    let only = match counts.failed.keys().collect::<Vec<_>>()[..] {
        [class] => FailureClass::from_name(class),
        _ => None,
    };
    let tried = counts.lowered;
    let (code, text) = match only {
        Some(class) => (class.code(), format!("every candidate failed: {class}")),
        None if tried == 0 => {
            (Code::NoTerm, "no kernel could be generated for any candidate".to_owned())
        }
        None => (Code::NoCandidate, "no candidate survived".to_owned()),
    };
    let mut d = program.at_entry(Diagnostic::error(code, text)).note(format!(
        "{} candidates, {tried} kernels generated, {} built",
        counts.generated, counts.built
    ));
    for (class, count) in &counts.failed {
        d = d.note(format!("{count} failed: {class}"));
    }
    for (reason, count) in counts.rejected.iter().take(5) {
        d = d.note(format!("{count} without kernels: {reason}"));
    }
    for (class, log) in &found.logs {
        d = d.note(format!("the first that failed ({class}) said:\n{log}"));
    }
    let failed = |class: FailureClass| counts.failed.contains_key(class.name());
    if failed(FailureClass::Timeout) {
        d = d.help("allow more time with `--run-timeout S` and `--build-timeout S`");
    }
    if failed(FailureClass::Timeout) || failed(FailureClass::Crash) || failed(FailureClass::Wrong) {
        d = d.help("the inputs may be the cause: with other inputs, all of these are tried again");
    }
    if counts.resumed > 0 {
        let text = "of the failures, {} are known from the tuning store: `--anew` tries them again";
        d = d.help(text.replace("{}", &counts.resumed.to_string()));
    }
    if code == Code::NoTerm {
        d = d.help("other sizes or another `--device` may have kernels; `patsat eval` runs it in the interpreter");
    }
    d.into()
}

pub(super) fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}
