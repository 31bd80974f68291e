//! Turns candidate terms into variants: kernels that can be built, ranked by a model of the kernel.
//!
//! Kernels are generated on demand, since there are more candidates than a search looks at. Candidates with the
//! same kernel text are one variant. Nothing here runs a kernel.

use crate::calculus::size::{SizeEnv, Sym};
use crate::calculus::term::Term;
use crate::calculus::text::can_be_read;
use crate::device::cost_model::CostModel;
use crate::diag::{self, Code, Diagnostic, on_all_cores};
use crate::extract::{Alone, Candidate, Joiner, StageValues};
use crate::kernel::profile::{Profile, Unit, profile, units};
use crate::kernel::{self, Generator, Options, Prediction};
use crate::opencl;
use crate::opencl::plan::HostPlan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A candidate with its generated kernels.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The low-level term.
    pub term: Term,
    /// The term as it stands in the e-graph, with `chunked` and `packed` not expanded; `None` if it comes from
    /// elsewhere.
    pub compact: Option<Term>,
    /// The value of every symbol in the term.
    pub env: SizeEnv,
    /// The term without its tile sizes: distinguishes variants that do not differ in tunables alone.
    pub skeleton: String,
    /// Its kernels.
    pub plan: Arc<HostPlan>,
    /// Hash of the plan: identifies the variant in the tuning store.
    pub hash: String,
    /// Time the cost model predicts, in microseconds.
    pub predicted_us: f64,
    /// What its launches run, in order, as the cost model sees it.
    pub kernels: Vec<Kernel>,
    /// The resource that bounds the kernels by the model, in a word or two.
    pub bound: String,
}

/// What one launch of a variant runs, as the cost model sees it: a kernel, or a loop of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// The same number for kernels with the same features and the same number of launches, in whatever variant.
    pub features: u64,
    /// Predicted time over all its launches, in microseconds.
    pub us: f64,
}

/// Predicts the time of a program with these features, and of each of its kernels.
fn predicted(profile: &Profile, model: &CostModel) -> (Prediction, Vec<Kernel>) {
    let prediction = kernel::estimate(profile, model);
    let features = profile.units.iter().map(|unit| {
        let mut hasher = DefaultHasher::new();
        for k in unit.kernels() {
            (profile.kernels[*k].fingerprint(), profile.launches[*k].to_bits()).hash(&mut hasher);
        }
        if let Unit::Loop(team, _) = unit {
            team.hash(&mut hasher);
        }
        hasher.finish()
    });
    let of = |(features, us): (u64, &f64)| Kernel { features, us: *us };
    let kernels = features.zip(&prediction.kernels_us).map(of).collect();
    (prediction, kernels)
}

impl Variant {
    /// Generates the kernels of a term and predicts their time.
    ///
    /// # Errors
    /// When no kernel can be generated for the term, or the kernel exceeds a limit.
    pub fn new(
        term: &Term,
        env: &SizeEnv,
        skeleton: &str,
        generator: &Generator<'_>,
        model: &CostModel,
    ) -> Result<Variant, Box<Diagnostic>> {
        let program = generator.lower(term, env)?;
        Variant::of(&program, &profile(&program), term, env, skeleton, model)
    }

    /// Predicts the time of the kernels of a term.
    fn of(
        program: &kernel::ir::Program,
        profile: &Profile,
        term: &Term,
        env: &SizeEnv,
        skeleton: &str,
        model: &CostModel,
    ) -> Result<Variant, Box<Diagnostic>> {
        if !can_be_read(term) {
            // The tuning store and plans hold terms as text.
            let text = "the term is nested too deeply to be read back from a plan";
            return Err(Box::new(Diagnostic::error(Code::KernelLimit, text)));
        }
        let (prediction, kernels) = predicted(profile, model);
        let plan = opencl::print::print(program);
        Ok(Variant {
            term: term.clone(),
            compact: None,
            env: env.clone(),
            skeleton: skeleton.to_owned(),
            hash: hash(&plan)?,
            plan: Arc::new(plan),
            predicted_us: prediction.us,
            kernels,
            bound: prediction.bound,
        })
    }

    /// Returns the features of the kernel that takes longest by the model; `None` without kernels.
    pub fn longest(&self) -> Option<u64> {
        self.kernels.iter().max_by(|a, b| a.us.total_cmp(&b.us)).map(|k| k.features)
    }

    /// Returns the skeleton of the term, whoever runs its loops.
    pub fn skeleton_of_term(&self) -> &str {
        self.skeleton.split(OF_TEAMS).next().unwrap_or_default()
    }

    /// Returns the value of each tunable.
    pub fn tunables(&self) -> BTreeMap<String, u64> {
        tunables(&self.env)
    }
}

/// Returns the hash that identifies a plan in the tuning store and in files.
///
/// # Errors
/// In practice never, since a plan is plain data.
pub fn hash(plan: &HostPlan) -> Result<String, Diagnostic> {
    let text = serde_json::to_vec(plan).map_err(|e| {
        Diagnostic::error(Code::Internal, format!("a host plan cannot be written: {e}"))
    })?;
    Ok(blake3::hash(&text).to_hex()[..16].to_owned())
}

/// Returns why there is no kernel, with the quoted names, which differ from candidate to candidate, replaced by
/// dots.
pub fn reason(d: &Diagnostic) -> String {
    let parts = d.message.split('`').enumerate();
    let text: String = parts.map(|(i, part)| if i % 2 == 0 { part } else { "..." }).collect();
    format!("{}: {text}", d.code)
}

/// Returns the values of the symbols that a search chooses.
pub fn tunables(env: &SizeEnv) -> BTreeMap<String, u64> {
    env.iter()
        .filter(|(s, _)| match s {
            Sym::Tile(_) | Sym::Width(_) => true,
            // Rounded sizes follow from the tiles.
            Sym::Dim(_) | Sym::Round(_) | Sym::Meta(_) => false,
        })
        .map(|(s, v)| (s.to_string(), *v))
        .collect()
}

/// Candidates, each of which is turned into a variant on demand.
pub struct Pool<'a> {
    candidates: Vec<Candidate>,
    /// Gives the candidates of last resort.
    defaults: Option<Box<dyn FnOnce() -> diag::Result<Vec<Candidate>> + 'a>>,
    /// The values of the program's dimensions.
    dims: &'a SizeEnv,
    /// The stages of candidates.
    joiner: Joiner,
    /// The stages that were timed by themselves, with their kernels if they have any.
    stages: Vec<(Alone, Option<Vec<Kernel>>)>,
    /// The values for the tiles of stages.
    values: StageValues,
    generator: Generator<'a>,
    model: &'a CostModel,
    /// Indices of the candidates that have been looked at.
    seen: HashSet<usize>,
    /// Indices of the candidates that are not drawn, since their stages are known to be slow.
    slow: HashSet<usize>,
    /// Hashes of the plans generated so far.
    plans: HashSet<String>,
    /// Number of candidates whose plan another candidate had already.
    duplicates: usize,
    rejected: BTreeMap<String, usize>,
    /// Indices of the candidates that exceed a limit of the device.
    too_large: HashSet<usize>,
    /// The candidates that were looked at, in order, with their kernels if they have any.
    made: Vec<(usize, Option<Vec<Kernel>>)>,
    /// Statements that were generated for drawn candidates, also if no kernels came of them.
    written: usize,
    /// Bytes of kernel text after which no further candidates are drawn.
    most_written: usize,
    /// The least predicted time of the candidates that were drawn, in microseconds.
    least_us: f64,
    /// Time spent on generating kernels.
    spent: Duration,
}

impl<'a> Pool<'a> {
    /// Returns a pool of candidates, which must be ordered best first. `dims` gives the values of the program's dimensions.
    pub fn new(
        candidates: &[Candidate],
        dims: &'a SizeEnv,
        options: &'a Options,
        model: &'a CostModel,
    ) -> Pool<'a> {
        Pool {
            candidates: candidates.to_vec(),
            defaults: None,
            dims,
            joiner: Joiner::new(kernel::ITERATIONS),
            stages: vec![],
            values: StageValues::new(),
            generator: Generator::new(options),
            model,
            seen: HashSet::new(),
            slow: HashSet::new(),
            plans: HashSet::new(),
            duplicates: 0,
            rejected: BTreeMap::new(),
            too_large: HashSet::new(),
            made: vec![],
            written: 0,
            most_written: usize::MAX,
            least_us: f64::INFINITY,
            spent: Duration::ZERO,
        }
    }

    /// Returns the time spent on generating kernels, predictions included, in milliseconds.
    pub fn spent_ms(&self) -> f64 {
        self.spent.as_secs_f64() * 1e3
    }

    /// Returns the number of different plans generated so far.
    pub fn lowered(&self) -> usize {
        self.plans.len()
    }

    /// Returns the number of candidates that were not looked at: the kernel model did not rank them.
    pub fn unranked(&self) -> usize {
        self.candidates.len() - self.seen.len()
    }

    /// Returns the number of candidates whose plan was another candidate's.
    pub fn duplicates(&self) -> usize {
        self.duplicates
    }

    /// Returns the number of candidates for which no kernel could be generated, by reason.
    pub fn rejected(&self) -> &BTreeMap<String, usize> {
        &self.rejected
    }

    /// Returns all candidates, best first.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Gives the pool the values that the tiles of each stage may have.
    #[must_use]
    pub fn with_values(self, values: &StageValues) -> Pool<'a> {
        Pool { values: values.clone(), ..self }
    }

    /// Gives the pool the candidates of last resort, which [`Pool::fall_back`] asks for.
    #[must_use]
    pub fn with_defaults(
        self,
        defaults: impl FnOnce() -> diag::Result<Vec<Candidate>> + 'a,
    ) -> Pool<'a> {
        Pool { defaults: Some(Box::new(defaults)), ..self }
    }

    /// Adds the candidates of last resort, if none so far has kernels. Returns whether any were added.
    ///
    /// # Errors
    /// [`diag::Code::Interrupted`] when an interrupt was requested.
    pub fn fall_back(&mut self) -> diag::Result<bool> {
        let Some(defaults) = self.defaults.take_if(|_| self.plans.is_empty()) else {
            return Ok(false);
        };
        let values = |c: &Candidate| format!("{} {:?}", c.term, c.env);
        let known: HashSet<String> = self.candidates.iter().map(values).collect();
        let before = self.candidates.len();
        self.candidates.extend(defaults()?.into_iter().filter(|c| !known.contains(&values(c))));
        Ok(self.candidates.len() > before)
    }

    /// Takes `most` candidates that `wanted` accepts and that no earlier call has looked at: the best `each` of every
    /// skeleton first, then the others. If none of them has new kernels, takes as many again. Adds candidates that join the best
    /// stages of all so far, and some with other values for their slowest stages. Returns the variants, best prediction first.
    pub fn draw(
        &mut self,
        most: usize,
        each: usize,
        wanted: impl Fn(&Candidate) -> bool,
        go_on: impl Fn() -> bool,
    ) -> Vec<Variant> {
        self.draw_below(f64::INFINITY, most, each, wanted, go_on)
    }

    /// As [`Pool::draw`], but if `bound_us` is finite, it takes `most` at most, and none whose stages are known to take longer in
    /// all, in microseconds.
    fn draw_below(
        &mut self,
        bound_us: f64,
        most: usize,
        each: usize,
        wanted: impl Fn(&Candidate) -> bool,
        go_on: impl Fn() -> bool,
    ) -> Vec<Variant> {
        let mut of_skeleton: HashMap<&str, usize> = HashMap::new();
        let (mut first, mut rest) = (vec![], vec![]);
        let forms = self.candidates.iter().map(|c| c.form + 1).max().unwrap_or(1);
        for (i, c) in self.candidates.iter().enumerate() {
            if self.seen.contains(&i) || self.slow.contains(&i) || !wanted(c) {
                continue;
            }
            let count = of_skeleton.entry(&c.skeleton).or_default();
            if *count < each {
                first.push((*count, i));
            } else {
                rest.push(i);
            }
            *count += 1;
        }
        first.sort_by_key(|(count, _)| *count);
        let first = first.into_iter().map(|(_, i)| i).collect();
        let first = self.new_stages_first(first);
        let mut order: Vec<usize> =
            in_turns(first, forms, |i| self.candidates[*i].form).into_iter().chain(rest).collect();
        if bound_us.is_finite() {
            order.truncate(most);
            order = self.without_slow(bound_us, order);
        }
        // If none of the first has new kernels, others may.
        let mut drawn = vec![];
        for share in order.chunks(most.max(1)) {
            drawn = self.take_up_to(self.most_written, share, &go_on);
            for _ in 0..RETRIES {
                let others = self.others(share, &drawn, &wanted);
                if others.is_empty() {
                    break;
                }
                drawn.extend(self.take_up_to(self.most_written, &others, &go_on));
            }
            if !drawn.is_empty() {
                break;
            }
        }
        self.join(&mut drawn, &go_on);
        let mut drawn: Vec<Variant> = drawn.into_iter().map(|(_, v)| v).collect();
        // The sort is stable: candidates with equal predictions stay in the order of the additive estimate.
        drawn.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
        drawn
    }

    /// Leaves out the candidates whose stages take longer than `bound_us` microseconds in all, as far as known. They are not drawn later, either.
    fn without_slow(&mut self, bound_us: f64, order: Vec<usize>) -> Vec<usize> {
        let (candidates, joiner, dims) = (&self.candidates, &self.joiner, self.dims);
        let known = on_all_cores(&order, |i| joiner.expected_us(&candidates[*i], dims));
        let slow = |us: &Option<f64>| us.is_some_and(|us| us > bound_us);
        let (slow, rest): (Vec<_>, Vec<_>) =
            order.into_iter().zip(known).partition(|(_, us)| slow(us));
        self.slow.extend(slow.into_iter().map(|(i, _)| i));
        rest.into_iter().map(|(i, _)| i).collect()
    }

    /// Draws candidates in rounds while their predictions become better. The first round takes a candidate of every
    /// skeleton, if there are not too many. Returns the variants, best prediction first.
    pub fn draw_rounds(&mut self, go_on: impl Fn() -> bool) -> Vec<Variant> {
        self.time_stages(&go_on);
        let mut joined = vec![];
        self.join(&mut joined, &go_on);
        let mut drawn: Vec<Variant> = joined.into_iter().map(|(_, v)| v).collect();
        drawn.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
        let skeletons: HashSet<&str> =
            self.candidates.iter().map(|c| c.skeleton.as_str()).collect();
        let mut most = skeletons.len().clamp(ROUND, FIRST_ROUND);
        // Whole candidates are rarely better than joined ones: the first round in vain is the last.
        let mut in_vain = if drawn.is_empty() { 0 } else { IN_VAIN - 1 };
        self.most_written = MOST_WRITTEN;
        while in_vain < IN_VAIN && self.written < MOST_WRITTEN && go_on() {
            let best = |of: &[Variant]| of.first().map_or(f64::INFINITY, |v| v.predicted_us);
            let more = self.draw_below(SLOW * best(&drawn), most, 1, |_| true, &go_on);
            most = ROUND;
            in_vain = if best(&more) < WORTH_ANOTHER * best(&drawn) { 0 } else { in_vain + 1 };
            drawn.extend(more);
            drawn.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
        }
        self.most_written = usize::MAX;
        drawn
    }

    /// Predicts the times of the stages of all candidates, each stage by itself.
    fn time_stages(&mut self, go_on: &dyn Fn() -> bool) {
        let begun = Instant::now();
        let mut skeletons: HashSet<&str> = HashSet::new();
        let firsts: Vec<&Candidate> =
            self.candidates.iter().filter(|c| skeletons.insert(&c.skeleton)).collect();
        self.joiner.introduce(&firsts, self.dims);
        let mut written = 0;
        for round in 0.. {
            let Some(alone) = self.joiner.alone(round, &self.values, self.dims) else { break };
            let (generator, model) = (&self.generator, self.model);
            for share in alone.chunks(CHUNK_OF_STAGES) {
                if !go_on() || written >= MOST_WRITTEN {
                    self.spent += begun.elapsed();
                    return;
                }
                let made = on_all_cores(share, |a| {
                    let (statements, made) = generator.lower_counted(&a.term, &a.env);
                    (statements, made.ok().map(|program| predicted(&profile(&program), model).1))
                });
                for (alone, (statements, kernels)) in share.iter().zip(made) {
                    written += statements;
                    let us = kernels.as_ref().map(|kernels| kernels.iter().map(|k| k.us).sum());
                    self.joiner.timed(alone, us);
                    self.stages.push((alone.clone(), kernels));
                }
            }
        }
        self.spent += begun.elapsed();
    }

    /// Adds candidates that join the best stages of all so far. Their times tell more about the stages: joins again while that pays.
    fn join(&mut self, drawn: &mut Vec<(usize, Variant)>, go_on: &dyn Fn() -> bool) {
        let mut before = f64::INFINITY;
        for _ in 0..JOININGS {
            let best = best_of(drawn).min(self.least_us);
            if best > WORTHWHILE * before {
                break;
            }
            before = best;
            let begun = Instant::now();
            let more = self.joiner.joined(self.dims);
            self.spent += begun.elapsed();
            drawn.extend(self.take_all(more, go_on));
        }
        self.least_us = self.least_us.min(best_of(drawn));
    }

    /// Adds candidates to the pool, and returns their variants.
    fn take_all(
        &mut self,
        more: Vec<Candidate>,
        go_on: &dyn Fn() -> bool,
    ) -> Vec<(usize, Variant)> {
        let from = self.candidates.len();
        self.candidates.extend(more);
        let numbers: Vec<usize> = (from..self.candidates.len()).collect();
        self.take(&numbers, go_on)
    }

    /// Moves candidates with a stage that none before them has in front of the others. Stages are joined, so each has to be seen
    /// once, in whatever company.
    fn new_stages_first(&self, order: Vec<usize>) -> Vec<usize> {
        let mut known: HashSet<String> = HashSet::new();
        let mut skeletons: HashSet<&str> = HashSet::new();
        let (new, old): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|i| {
            let c = &self.candidates[*i];
            // Other values of the same stages come later.
            if !skeletons.insert(&c.skeleton) {
                return false;
            }
            let stages = c.stage_skeletons();
            let new = stages.iter().any(|s| !known.contains(s));
            known.extend(stages);
            new
        });
        new.into_iter().chain(old).collect()
    }

    /// Returns the variants of candidates that join the stages that are best by the expected times of the kernels so far.
    pub fn join_by(
        &mut self,
        expected_us: impl Fn(&Kernel) -> f64,
        go_on: impl Fn() -> bool,
    ) -> Vec<Variant> {
        let begun = Instant::now();
        let mut joiner = self.joiner.clone();
        joiner.forget_times();
        let times = |kernels: &Vec<Kernel>| kernels.iter().map(&expected_us).collect::<Vec<f64>>();
        for (i, kernels) in &self.made {
            let us = kernels.as_ref().map(times);
            joiner.add(&self.candidates[*i], us.as_deref(), self.dims);
        }
        for (alone, kernels) in &self.stages {
            joiner.timed(alone, kernels.as_ref().map(|kernels| times(kernels).iter().sum()));
        }
        let more = joiner.joined(self.dims);
        self.spent += begun.elapsed();
        self.take_all(more, &go_on).into_iter().map(|(_, v)| v).collect()
    }

    /// Returns the next candidate of each skeleton of which some of these candidates were too large and none has a kernel.
    fn others(
        &self,
        looked_at: &[usize],
        drawn: &[(usize, Variant)],
        wanted: impl Fn(&Candidate) -> bool,
    ) -> Vec<usize> {
        let skeleton = |i: &usize| self.candidates[*i].skeleton.as_str();
        let made: HashSet<&str> = drawn.iter().map(|(i, _)| skeleton(i)).collect();
        let mut without: HashSet<&str> =
            looked_at.iter().filter(|i| self.too_large.contains(i)).map(skeleton).collect();
        without.retain(|s| !made.contains(s));
        let fresh = (0..self.candidates.len()).filter(|i| !self.seen.contains(i));
        fresh.filter(|i| wanted(&self.candidates[*i]) && without.remove(skeleton(i))).collect()
    }

    /// Returns the variants of the candidates with these indices, in this order, each with its index. Leaves out
    /// candidates that were looked at before, that have no kernel, or whose plan another candidate had already. All
    /// cores generate kernels. Candidates not reached when `go_on` returns `false` may be taken later.
    pub fn take(&mut self, numbers: &[usize], go_on: &dyn Fn() -> bool) -> Vec<(usize, Variant)> {
        self.take_up_to(usize::MAX, numbers, go_on)
    }

    /// As [`Pool::take`], until this many statements were generated; then the next ones may be taken later. Kernels of
    /// long programs take long to generate, and their stages are joined anyway.
    fn take_up_to(
        &mut self,
        most: usize,
        numbers: &[usize],
        go_on: &dyn Fn() -> bool,
    ) -> Vec<(usize, Variant)> {
        let begun = Instant::now();
        let fresh: Vec<usize> = numbers.iter().copied().filter(|i| self.seen.insert(*i)).collect();
        let (candidates, generator, model) = (&self.candidates, &self.generator, self.model);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut out = vec![];
        for share in fresh.chunks(CHUNK * cores) {
            if !go_on() || self.written >= most {
                for i in share {
                    self.seen.remove(i);
                }
                continue;
            }
            let lower = |i: &usize| {
                let c = &candidates[*i];
                let (statements, made) = generator.lower_counted(&c.term, &c.env);
                let made = made.and_then(|p| {
                    let mut profile = profile(&p);
                    let own = Variant::of(&p, &profile, &c.term, &c.env, &c.skeleton, model)?;
                    let others = by_teams(&p, &mut profile, &own, generator, model);
                    Ok((own, others))
                });
                (statements, made)
            };
            let made = on_all_cores(share, lower);
            for (i, (statements, made)) in share.iter().zip(made) {
                // Whatever the number of cores, the same candidates are taken.
                if self.written >= most {
                    self.seen.remove(i);
                    continue;
                }
                self.written += statements;
                let known = made.as_ref().ok().map(|(v, _)| v.kernels.clone());
                let times =
                    |kernels: &Vec<Kernel>| kernels.iter().map(|k| k.us).collect::<Vec<_>>();
                let kernels_us = known.as_ref().map(times);
                self.joiner.add(&candidates[*i], kernels_us.as_deref(), self.dims);
                self.made.push((*i, known));
                match made {
                    Ok((v, others)) if self.plans.insert(v.hash.clone()) => {
                        for v in others
                            .into_iter()
                            .filter(|v| self.plans.insert(v.hash.clone()))
                            .chain([v])
                        {
                            let compact = Some(candidates[*i].compact.clone());
                            out.push((*i, Variant { compact, ..v }));
                        }
                    }
                    Ok(_) => self.duplicates += 1,
                    Err(d) => {
                        if d.code == Code::KernelLimit {
                            self.too_large.insert(*i);
                        }
                        *self.rejected.entry(reason(&d)).or_default() += 1;
                    }
                }
            }
        }
        self.spent += begun.elapsed();
        out
    }
}

/// Between the skeleton of a term and the numbers of work-groups that run its loops of the host.
const OF_TEAMS: &str = " @ ";

/// Returns the variants in which resident work-groups run loops of the host: the best by the model, and with each number of groups
/// the one in which all loops that can be are run so. Those that are predicted to be much slower than the host's loop are left out.
fn by_teams(
    program: &kernel::ir::Program,
    profile: &mut Profile,
    own: &Variant,
    generator: &Generator<'_>,
    model: &CostModel,
) -> Vec<Variant> {
    let mut choices: BTreeMap<u64, SizeEnv> = BTreeMap::new();
    for (number, ways) in generator.teams(program).iter().enumerate() {
        let mut best = (own.predicted_us, None);
        for groups in ways {
            let choice = SizeEnv::from_iter([(Sym::of_loop(number), *groups)]);
            let Ok(other) = generator.with_teams(program.clone(), &choice) else { continue };
            profile.units = units(&other);
            let us = kernel::estimate(profile, model).us;
            if us < SLOW * own.predicted_us {
                choices.entry(*groups).or_default().extend(choice);
            }
            if us < best.0 {
                best = (us, Some(*groups));
            }
        }
        // The best of each loop, under a number of groups that no team has.
        choices.entry(0).or_default().extend(best.1.map(|groups| (Sym::of_loop(number), groups)));
    }
    let mut choices: Vec<_> = choices.into_values().filter(|c| !c.is_empty()).collect();
    choices.dedup();
    let made = choices.into_iter().filter_map(|choice| {
        let other = generator.with_teams(program.clone(), &choice).ok()?;
        profile.units = units(&other);
        let groups: Vec<String> = choice.values().map(ToString::to_string).collect();
        let skeleton = format!("{}{OF_TEAMS}{}", own.skeleton, groups.join(","));
        let mut env = own.env.clone();
        env.extend(choice);
        Variant::of(&other, profile, &own.term, &env, &skeleton, model).ok()
    });
    made.collect()
}

/// Returns the least predicted time, in microseconds.
fn best_of(drawn: &[(usize, Variant)]) -> f64 {
    drawn.iter().map(|(_, v)| v.predicted_us).fold(f64::INFINITY, f64::min)
}

/// Returns items of several forms, best first, such that among the first `2 k` are the first `k`, and the first `k / forms` of each
/// form.
fn in_turns(items: Vec<usize>, forms: usize, form: impl Fn(&usize) -> usize) -> Vec<usize> {
    let mut of_form = vec![0; forms];
    let mut ranked: Vec<(usize, usize)> = vec![];
    for (rank, i) in items.into_iter().enumerate() {
        let own = &mut of_form[form(&i)];
        ranked.push((rank.min(*own * forms), i));
        *own += 1;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, i)| i).collect()
}

/// Number of candidates of a round.
const ROUND: usize = 128;
/// Most candidates of the first round.
const FIRST_ROUND: usize = 384;
/// Statements after which rounds draw no further candidates, only those that join or change stages, and after which no further
/// stages are timed by themselves.
const MOST_WRITTEN: usize = 300_000;
/// The rounds end after this many whose best prediction was not less than this part of the best before.
const IN_VAIN: usize = 2;
const WORTH_ANOTHER: f64 = 0.95;
/// A whole candidate whose stages take this many times as long as the best candidate is not drawn.
const SLOW: f64 = 2.0;

/// Number of further candidates that are tried of a skeleton whose first ones are too large for the device.
const RETRIES: usize = 8;

/// Most times that stages are joined after a draw.
const JOININGS: usize = 8;
/// Share of the best predicted time below which joining stages again pays.
const WORTHWHILE: f64 = 0.98;

/// Number of kernels that each core generates between two calls of `go_on`.
const CHUNK: usize = 4;
/// Number of stages that are timed between two calls of `go_on`.
const CHUNK_OF_STAGES: usize = 64;
