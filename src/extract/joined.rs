//! Joins the best stages of different candidates.
//!
//! Extraction keeps a few dozen terms of a program, and each term has a few hundred values for its tiles. Where a program has
//! several stages, these are combinations of stages and values, and the best of each stage may meet only in one that was not
//! kept. The times of stages add up. So each stage is timed by itself ([`Joiner::alone`]), and new candidates join the stages
//! that take the least time. A stage in a loop counts as often as the loop runs. Only stages that read and give the same values
//! take each other's places: two candidates may cut a program at different places between the same types. Stages that follow each
//! other may also make in several kernels what one makes elsewhere, and the other way round ([`Run`]).
//!
//! The times of the kernels of whole candidates are more exact, and measurements give only these. If each stage of a candidate is
//! one kernel, it gets the time of the kernel.

use super::{Candidate, Passed, search, stages, written_out};
use crate::calculus::size::{SizeEnv, Sym};
use crate::calculus::term::Term;
use crate::diag::on_all_cores;
use indexmap::{IndexMap, IndexSet};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// The values for the tiles of each stage as it stands in a compact term, most promising first.
pub type StageValues = HashMap<Term, Vec<SizeEnv>>;

/// Stages of one place that are joined with those of other places.
const BEST: usize = 6;
/// Most stages that follow each other and take the place of others, unless a candidate has more of them there.
const LONGEST: usize = 6;
/// Most candidates that are joined.
const JOINED: usize = 24;
/// Fewest of each form of the program, if there are as many: stages in company may take less time than alone, in one form more than
/// in another.
const OF_FORM: usize = 6;

/// What is timed by itself in a round: how many forms of the stage at a place, those with the least times first, with which of
/// their values, the share of a candidate's time from which a place has a part in the round, and how many times as long as the best of
/// its place a form may take.
struct Round {
    forms: usize,
    values: std::ops::Range<usize>,
    share: f64,
    slow: f64,
}

/// Later rounds try further values for fewer forms.
const ROUNDS: [Round; 4] = [
    Round { forms: usize::MAX, values: 0..1, share: 0.0, slow: f64::MAX },
    Round { forms: usize::MAX, values: 1..2, share: 0.0, slow: 3.0 },
    Round { forms: 8, values: 2..8, share: 0.02, slow: f64::MAX },
    Round { forms: 3, values: 8..32, share: 0.1, slow: f64::MAX },
];

/// Stages whose best candidate takes this many times as long as the best of all have no part in further rounds.
const SLOW: f64 = 1.5;

/// A stage as it stands in a compact term: its symbols are not renamed.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Stage {
    part: Term,
    /// The values of its tiles, in order.
    values: Vec<(Sym, u64)>,
}

impl Stage {
    fn of(part: Term, values: &SizeEnv) -> Stage {
        let mut values: Vec<_> = values.iter().map(|(s, v)| (s.clone(), *v)).collect();
        values.sort();
        Stage { part, values }
    }
}

/// Where stages stand that compute the same: what they read and give, and the term that they read ([`stages::sources`]).
type At = (Passed, Term);

/// The different stages of a place, with the least known time of each in microseconds. It is infinite if no kernels can be
/// generated.
type Place = IndexMap<Stage, Option<f64>>;

/// Stages that follow each other, the last that runs first: places, and a stage of each.
type Path = Vec<(usize, usize)>;

/// A stage as a program of its own.
#[derive(Clone)]
pub struct Alone {
    stage: Stage,
    source: Term,
    /// The term, which reads inputs in place of what the stages before it give.
    pub term: Term,
    /// The value of every symbol.
    pub env: SizeEnv,
}

/// Stages that follow each other in a candidate. Others that make the same of the same, more or fewer, may take their place.
#[derive(Clone)]
struct Run {
    at: At,
    /// How often the host runs them.
    times: f64,
    /// The stages of candidates.
    own: IndexSet<Path>,
}

/// The stages that take the least time in place of a run, best first, with their times.
type OfRuns = HashMap<At, Rc<[(f64, Path)]>>;

/// Candidates that differ in their stages alone.
#[derive(Clone)]
struct Family {
    /// With a hole for each run.
    frame: Term,
    /// The form of the program that the first of them was found as.
    form: usize,
    runs: Vec<Run>,
    /// The stages of each candidate that was looked at.
    known: IndexSet<Vec<Path>>,
}

/// The stages of candidates.
#[derive(Clone)]
pub struct Joiner {
    /// Assumed number of iterations of a loop that ends by a condition.
    iterations: f64,
    places: IndexMap<At, Place>,
    /// By the frame and what the runs make of what.
    families: IndexMap<(Term, Vec<At>), Family>,
    /// The compact terms of candidates, taken apart: `None` for those that have not several stages.
    apart: Arc<Mutex<HashMap<Term, Option<Arc<Apart>>>>>,
    /// The stages of the terms that were joined, at their places.
    placed: Arc<stages::Placed>,
}

/// A candidate taken apart.
struct Apart {
    frame: Term,
    parts: Vec<Term>,
    sources: Vec<Term>,
}

impl Apart {
    fn of(c: &Candidate) -> Option<Apart> {
        let (frame, parts) = stages::frame(&c.compact).ok()?;
        if parts.len() < 2 || parts.len() != c.stages.len() {
            return None;
        }
        let sources = stages::sources(&c.compact).ok()?;
        Some(Apart { frame, parts, sources })
    }
}

impl Joiner {
    /// A joiner without stages, which assumes this number of iterations of a loop that ends by a condition.
    pub fn new(iterations: f64) -> Joiner {
        let (places, families, apart, placed) = Default::default();
        Joiner { iterations, places, families, apart, placed }
    }

    /// Returns a candidate taken apart; `None` for one that has not several stages.
    fn apart(&self, c: &Candidate) -> Option<Arc<Apart>> {
        let known = || self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&c.compact) {
            return known.clone();
        }
        let apart = Apart::of(c).map(Arc::new);
        known().insert(c.compact.clone(), apart.clone());
        apart
    }

    /// Adds the stages of candidates, each with the values that it has there. `dims` gives the values of the program's dimensions.
    pub fn introduce(&mut self, candidates: &[&Candidate], dims: &SizeEnv) {
        let apart = on_all_cores(candidates, |c| self.apart(c));
        for (c, apart) in candidates.iter().zip(apart) {
            if let Some(apart) = apart {
                self.enter(c, &apart, dims);
            }
        }
    }

    /// Adds a candidate that was looked at, with the times of its kernels in microseconds, in the order in which they run first,
    /// if it has kernels.
    pub fn add(&mut self, c: &Candidate, kernels_us: Option<&[f64]>, dims: &SizeEnv) {
        let Some(apart) = self.apart(c) else { return };
        // If each stage is one kernel, it gets the time of the kernel.
        let order = stages::order(&apart.frame)
            .filter(|o| kernels_us.is_some_and(|us| us.len() == o.len()));
        let times = stages::runs(&apart.frame, dims, self.iterations);
        let Some((family, paths)) = self.enter(c, &apart, dims) else { return };
        let all: Path = paths.iter().flatten().copied().collect();
        for (k, us) in order.into_iter().flatten().zip(kernels_us.into_iter().flatten()) {
            let (place, i) = all[k];
            let (known, us) = (&mut self.places[place][i], us / times[k]);
            *known = Some(known.map_or(us, |least| least.min(us)));
        }
        self.families[family].known.insert(paths);
    }

    /// Returns the family of a candidate and its stages.
    fn enter(
        &mut self,
        c: &Candidate,
        apart: &Apart,
        dims: &SizeEnv,
    ) -> Option<(usize, Vec<Path>)> {
        let Apart { frame, parts, sources } = apart;
        let (frame, runs) = stages::collapsed(frame).ok()?;
        let times = stages::runs(&frame, dims, self.iterations);
        let numbers = stages::numbers(parts);
        let mut path = vec![];
        for (((part, source), at), k) in parts.iter().zip(sources).zip(c.stages.iter()).zip(numbers)
        {
            let place = self.places.entry((at.clone(), source.clone()));
            let number = place.index();
            let values = stages::values_at(part, k, &c.env);
            let entry = place.or_default().entry(Stage::of(part.clone(), &values));
            path.push((number, entry.index()));
            entry.or_insert(None);
        }
        let ends = |run: &Vec<usize>| {
            let (last, first) = (*run.first()?, *run.last()?);
            let (read, given) = (c.stages[first].read.clone(), c.stages[last].given.clone());
            Some((Passed { read, given }, sources[first].clone()))
        };
        let at: Vec<At> = runs.iter().map(ends).collect::<Option<_>>()?;
        let paths: Vec<Path> =
            runs.iter().map(|run| run.iter().map(|k| path[*k]).collect()).collect();
        let entry = self.families.entry((frame.clone(), at.clone()));
        let number = entry.index();
        let family = entry.or_insert_with(|| {
            let run = |(at, times)| Run { at, times, own: IndexSet::new() };
            let runs = at.into_iter().zip(times).map(run).collect();
            Family { frame, form: c.form, runs, known: IndexSet::new() }
        });
        for (run, path) in family.runs.iter_mut().zip(&paths) {
            run.own.insert(path.clone());
        }
        Some((number, paths))
    }

    /// Returns the stages that round `round` times, each as a program of its own; `None` after the last round. The first of all places
    /// come first, then the second ones: of a large program, not all are timed. `values` gives the values of stages.
    pub fn alone(
        &mut self,
        round: usize,
        values: &StageValues,
        dims: &SizeEnv,
    ) -> Option<Vec<Alone>> {
        let Round { forms, values: range, share, slow } = ROUNDS.get(round)?;
        let wanted = self.shares();
        let mut found: IndexMap<(Stage, Term), usize> = IndexMap::new();
        for (((_, source), place), most) in self.places.iter_mut().zip(wanted) {
            if most < *share {
                continue;
            }
            let mut order: Vec<usize> = (0..place.len()).collect();
            order.sort_by(|a, b| us_of(place, *a).total_cmp(&us_of(place, *b)));
            let most_us = order.first().map_or(f64::INFINITY, |best| slow * us_of(place, *best));
            let part = |i: &usize| place.get_index(*i).map(|(stage, _)| stage.part.clone());
            let fast = order.iter().take_while(|i| us_of(place, **i) <= most_us);
            let parts: IndexSet<Term> = fast.filter_map(part).collect();
            let mut rank = 0;
            for part in parts.into_iter().take(*forms) {
                let known = values.get(&part).map_or(&[][..], Vec::as_slice);
                let some = known.iter().skip(range.start).take(range.len());
                let mut stages: Vec<Stage> = some
                    .map(|env| Stage::of(part.clone(), &stages::values_at(&part, 0, env)))
                    .collect();
                // Without symbols.
                if values.get(&part).is_none() && range.start == 0 {
                    stages.push(Stage { part: part.clone(), values: vec![] });
                }
                for stage in stages {
                    let us = place.entry(stage.clone()).or_insert(None);
                    if us.is_none() {
                        found.entry((stage, source.clone())).or_insert(rank);
                        rank += 1;
                    }
                }
            }
        }
        found.sort_by(|_, a, _, b| a.cmp(b));
        let found: Vec<(Stage, Term)> = found.into_keys().collect();
        let alone = on_all_cores(&found, |(stage, source)| {
            let by_itself = Term::of_chain(&[stage.part.chain(), source.chain()].concat());
            let term = written_out(&by_itself.ok()?).ok()?;
            let mut env = dims.clone();
            env.extend(stage.values.iter().cloned());
            Some(Alone { stage: stage.clone(), source: source.clone(), term, env })
        });
        Some(alone.into_iter().flatten().collect())
    }

    /// Adds the time of a stage by itself, in microseconds; `None` if it has no kernels.
    pub fn timed(&mut self, alone: &Alone, us: Option<f64>) {
        for (_, place) in self.places.iter_mut().filter(|((_, source), _)| *source == alone.source)
        {
            if let Some(known @ None) = place.get_mut(&alone.stage) {
                *known = Some(us.unwrap_or(f64::INFINITY));
            }
        }
    }

    /// Forgets all times.
    pub fn forget_times(&mut self) {
        self.places.values_mut().flat_map(IndexMap::values_mut).for_each(|us| *us = None);
    }

    /// Returns the greatest share that the best stage of each place has in the best candidate of a family that has it.
    fn shares(&self) -> Vec<f64> {
        let least = |place: usize| {
            let us = (0..self.places[place].len()).map(|i| us_of(&self.places[place], i));
            us.fold(f64::INFINITY, f64::min)
        };
        let least: Vec<f64> = (0..self.places.len()).map(least).collect();
        let of_path = |path: &[usize]| path.iter().map(|place| least[*place]).sum::<f64>();
        let places = |path: &Path| path.iter().map(|(place, _)| *place).collect::<Vec<usize>>();
        let best = |run: &Run| {
            let own: IndexSet<Vec<usize>> = run.own.iter().map(places).collect();
            let best = own.iter().map(|path| of_path(path)).fold(f64::INFINITY, f64::min);
            (own, best * run.times)
        };
        let families: Vec<Vec<(IndexSet<Vec<usize>>, f64)>> =
            self.families.values().map(|f| f.runs.iter().map(best).collect()).collect();
        let total =
            |runs: &Vec<(IndexSet<Vec<usize>>, f64)>| runs.iter().map(|(_, us)| us).sum::<f64>();
        let most = SLOW * families.iter().map(total).fold(f64::INFINITY, f64::min);
        let mut shares = vec![0.0_f64; self.places.len()];
        for (family, runs) in self.families.values().zip(&families) {
            for (run, (own, us)) in family.runs.iter().zip(runs) {
                for path in own {
                    let total = total(runs) - us + of_path(path) * run.times;
                    // A place that only slow candidates have is of no interest.
                    if total.is_finite() && total <= most {
                        for place in path {
                            shares[*place] = shares[*place].max(least[*place] * run.times / total);
                        }
                    }
                }
            }
        }
        shares
    }

    /// Returns the sum of the times of a candidate's stages in microseconds, each as often as it runs; `None` if a time is not known.
    /// For values that were not timed, it takes the least time with others. It is infinite if a stage has no kernels by itself, since
    /// such a stage rarely has some in company.
    pub fn expected_us(&self, c: &Candidate, dims: &SizeEnv) -> Option<f64> {
        let apart = self.apart(c)?;
        let Apart { frame, parts, sources } = &*apart;
        let numbers = stages::numbers(parts);
        let runs = stages::runs(frame, dims, self.iterations);
        let mut sum: f64 = 0.0;
        let parts = parts.iter().zip(c.stages.iter().zip(sources));
        for (((part, (at, source)), k), runs) in parts.zip(numbers).zip(runs) {
            let stage = Stage::of(part.clone(), &stages::values_at(part, k, &c.env));
            let place = self.places.get(&(at.clone(), source.clone()))?;
            let known = place.get(&stage).copied().flatten();
            let others = place.iter().filter(|(other, _)| other.part == stage.part);
            let least = || others.filter_map(|(_, us)| *us).min_by(f64::total_cmp);
            sum += known.or_else(least)? * runs;
        }
        Some(sum)
    }

    /// Returns candidates that join stages with known times and were not looked at, best first. `dims` gives the values of the
    /// program's dimensions.
    pub fn joined(&self, dims: &SizeEnv) -> Vec<Candidate> {
        let mut out: Vec<(&Family, f64, Vec<Path>)> = vec![];
        let mut of_runs = OfRuns::new();
        for family in self.families.values() {
            let best = self.best(family, &mut of_runs);
            out.extend(best.into_iter().map(|(us, choice)| (family, us, choice)));
        }
        out.sort_by(|a, b| a.1.total_cmp(&b.1));
        let candidate = |(family, us, choice): &(&Family, f64, Vec<Path>)| {
            self.candidate(family, choice, *us, dims)
        };
        let (mut joined, mut of_form) = (vec![], HashMap::new());
        for choice in &out {
            let taken = of_form.entry(choice.0.form).or_insert(0);
            // Not all combinations of stages are candidates.
            if (joined.len() < JOINED || *taken < OF_FORM)
                && let Some(candidate) = candidate(choice)
            {
                joined.push(candidate);
                *taken += 1;
            }
        }
        joined
    }

    /// Returns the combinations of stages with the least sums that are not known, best first, with their sums. `of_runs` has the
    /// stages of the runs so far.
    fn best(&self, family: &Family, of_runs: &mut OfRuns) -> Vec<(f64, Vec<Path>)> {
        // The least sums up to each run; each with its place among those up to the run before, and the path of this run.
        let mut layers: Vec<Vec<(f64, usize, usize)>> = vec![];
        let mut all: Vec<Rc<[(f64, Path)]>> = vec![];
        for run in &family.runs {
            let paths = of_runs.entry(run.at.clone()).or_insert_with(|| {
                let longest = self.longest(&run.at);
                self.paths(&run.at, longest, &mut HashMap::new()).into()
            });
            // Some stages have kernels only in the company of others. Then their order is that of the estimate.
            let paths = match paths.is_empty() {
                true => self.without_kernels(run).into(),
                false => paths.clone(),
            };
            let before = layers.last().map_or(&[(0.0, 0, 0)][..], Vec::as_slice);
            layers.push(least_sums(before, &paths, run.times));
            all.push(paths);
        }
        let last = layers.last().map_or(&[][..], Vec::as_slice);
        let chosen = |(us, mut before, mut path): (f64, usize, usize)| {
            let mut choice: Vec<Path> = vec![];
            for (k, paths) in all.iter().enumerate().rev() {
                choice.push(paths[path].1.clone());
                if k > 0 {
                    (_, before, path) = layers[k - 1][before];
                }
            }
            choice.reverse();
            (us, choice)
        };
        let found = last.iter().copied().map(chosen);
        found.filter(|(_, choice)| !family.known.contains(choice)).collect()
    }

    /// Returns how many stages may take the place of a run: as many as a candidate has, at least [`LONGEST`].
    fn longest(&self, at: &At) -> usize {
        let runs = self.families.values().flat_map(|f| &f.runs).filter(|run| run.at == *at);
        runs.flat_map(|run| run.own.iter().map(Vec::len)).fold(LONGEST, usize::max)
    }

    /// Returns the stages of candidates with the sums of the known times, if each was timed by itself.
    fn without_kernels(&self, run: &Run) -> Vec<(f64, Path)> {
        let us = |(place, i): &(usize, usize)| self.places[*place][*i];
        let known = |path: &&Path| path.iter().all(|stage| us(stage).is_some());
        let sum = |path: &Path| path.iter().filter_map(us).filter(|us| us.is_finite()).sum();
        run.own.iter().filter(known).take(BEST).map(|path| (sum(path), path.clone())).collect()
    }

    /// Returns the stages, at most `longest`, that make the same of the same in the least time, best first, with their times.
    /// `known` has what was found so far, by what is given and the number of stages.
    fn paths(
        &self,
        at: &At,
        longest: usize,
        known: &mut HashMap<(String, usize), Vec<(f64, Path)>>,
    ) -> Vec<(f64, Path)> {
        let (Passed { read, given }, source) = at;
        if let Some(paths) = known.get(&(given.clone(), longest)) {
            return paths.clone();
        }
        let mut found: Vec<(f64, Path)> = vec![];
        for (k, ((own, from), place)) in self.places.iter().enumerate() {
            if own.given != *given {
                continue;
            }
            let before = if own.read == *read && from == source {
                vec![(0.0, vec![])]
            } else if let (Some(between), true) =
                (&own.read, longest > 1 && reads_stored(place, from))
            {
                let passed = Passed { read: read.clone(), given: between.clone() };
                self.paths(&(passed, source.clone()), longest - 1, known)
            } else {
                continue;
            };
            let mut order: Vec<usize> =
                (0..place.len()).filter(|i| us_of(place, *i).is_finite()).collect();
            order.sort_by(|a, b| us_of(place, *a).total_cmp(&us_of(place, *b)));
            for i in order.into_iter().take(BEST) {
                let with = |(us, path): &(f64, Path)| {
                    (us + us_of(place, i), [&[(k, i)], path.as_slice()].concat())
                };
                found.extend(before.iter().map(with));
            }
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.truncate(JOINED);
        known.insert((given.clone(), longest), found.clone());
        found
    }

    /// Returns the candidate of a family with these stages.
    fn candidate(
        &self,
        family: &Family,
        choice: &[Path],
        us: f64,
        dims: &SizeEnv,
    ) -> Option<Candidate> {
        let of = |(place, i): &(usize, usize)| {
            let ((passed, _), stages) = self.places.get_index(*place)?;
            Some((passed.clone(), stages.get_index(*i)?.0))
        };
        let chosen: Vec<Vec<(Passed, &Stage)>> =
            choice.iter().map(|path| path.iter().map(of).collect()).collect::<Option<_>>()?;
        let run = |run: &Vec<(Passed, &Stage)>| {
            let factors: Vec<Term> = run.iter().flat_map(|(_, stage)| stage.part.chain()).collect();
            Term::of_chain(&factors)
        };
        let runs: Vec<Term> = chosen.iter().map(run).collect::<Result<_, _>>().ok()?;
        let chosen: Vec<(Passed, &Stage)> = chosen.into_iter().flatten().collect();
        let compact = stages::framed(&family.frame, &runs.iter().collect::<Vec<_>>()).ok()?;
        let (_, parts) = stages::frame(&compact).ok()?;
        // Stages from different candidates may be one beside each other.
        if !parts.iter().eq(chosen.iter().map(|(_, stage)| &stage.part)) {
            return None;
        }
        let apart = self.placed.apart(&compact).ok()?;
        let term = written_out(&apart.compact).ok()?;
        let mut env = stages::with_aliases(&apart.compact, dims);
        for ((_, stage), k) in chosen.iter().zip(stages::numbers(&apart.parts)) {
            env.extend(stage.values.iter().map(|(s, v)| (stages::numbered(s, k), *v)));
        }
        let skeleton = search::skeleton_text(&term);
        let stages = chosen.into_iter().map(|(passed, _)| passed).collect();
        Some(Candidate { term, compact, env, skeleton, form: family.form, stages, estimate_us: us })
    }
}

/// Returns the least sums of one of the times `before` and one of the paths, which the host runs `times` times, with the places of
/// both, least first. Those before have the least first.
fn least_sums(
    before: &[(f64, usize, usize)],
    paths: &[(f64, Path)],
    times: f64,
) -> Vec<(f64, usize, usize)> {
    const MOST: usize = JOINED * BEST;
    let sorted = paths.is_sorted_by(|a, b| a.0 <= b.0);
    let mut sums = vec![];
    for (i, (sum, ..)) in before.iter().enumerate() {
        // All pairs of earlier ones have sums that are no greater.
        let most = if sorted { MOST / (i + 1) } else { paths.len() };
        let paths = paths.iter().enumerate().take(most);
        sums.extend(paths.map(|(j, (us, _))| (sum + us * times, i, j)));
    }
    sums.sort_by(|a, b| a.0.total_cmp(&b.0));
    sums.truncate(MOST);
    sums
}

/// Whether the stages of a place read arrays that others have stored, as they are.
fn reads_stored(place: &Place, source: &Term) -> bool {
    let plain = |(stage, _): (&Stage, _)| stages::stored(&stage.part.ty().dom, &mut 0).ok();
    place.first().and_then(plain).is_some_and(|plain| plain == *source)
}

/// Returns the known time of a stage, in microseconds.
fn us_of(place: &Place, i: usize) -> f64 {
    place[i].unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::Size;
    use crate::calculus::text::{Context, read_term};
    use crate::calculus::ty::Ty;
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    #[test]
    fn the_best_stages_meet() {
        // The best of each place, 1 and 2, are known only beside slow ones.
        let us = [&[900.0, 10.0, 300.0][..], &[500.0, 700.0, 20.0][..]];
        let stage = |k: usize| Stage {
            part: Term::id(&Ty::Unit),
            values: vec![(Sym::Meta(k.to_string().into()), 1)],
        };
        let at = |k: usize| {
            let passed = Passed { read: None, given: k.to_string() };
            (passed, Term::id(&Ty::Unit))
        };
        let place =
            |us: &&[f64]| us.iter().enumerate().map(|(k, us)| (stage(k), Some(*us))).collect();
        let places = us.iter().enumerate().map(|(k, us)| (at(k), place(us))).collect();
        let joiner = Joiner { places, ..Joiner::new(16.0) };
        let known = [[0, 0], [0, 2], [1, 0], [2, 1], [2, 2]];
        let paths = |[a, b]: [usize; 2]| vec![vec![(0, a)], vec![(1, b)]];
        // The second stage runs three times.
        let runs = [(0, 1.0), (1, 3.0)];
        let mut family = Family {
            form: 0,
            frame: Term::id(&Ty::Unit),
            runs: runs.map(|(k, times)| Run { at: at(k), times, own: IndexSet::new() }).to_vec(),
            known: known.into_iter().map(paths).collect(),
        };
        assert_eq!(joiner.best(&family, &mut OfRuns::new())[0], (70.0, paths([1, 2])));
        // A combination without kernels is not proposed again.
        family.known.insert(paths([1, 2]));
        assert!(joiner.best(&family, &mut OfRuns::new()).iter().all(|(_, c)| *c != paths([1, 2])));
    }

    #[test]
    fn the_least_sums_are_those_of_all_pairs() {
        let number = |k: usize| ((k * 7919) % 1009) as f64;
        let mut before: Vec<(f64, usize, usize)> = (0..200).map(|k| (number(k), 0, 0)).collect();
        before.sort_by(|a, b| a.0.total_cmp(&b.0));
        for sorted in [true, false] {
            let mut paths: Vec<(f64, Path)> =
                (0..JOINED).map(|k| (number(k + 500) / 8.0, vec![(0, k)])).collect();
            if sorted {
                paths.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            let pairs = before.iter().enumerate().flat_map(|(i, b)| {
                paths.iter().enumerate().map(move |(j, p)| (b.0 + 3.0 * p.0, i, j))
            });
            let mut all: Vec<(f64, usize, usize)> = pairs.collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            all.truncate(JOINED * BEST);
            assert_eq!(least_sums(&before, &paths, 3.0), all);
        }
    }

    /// A candidate of two kernels that map these functions, with this length of all tiles.
    fn candidate(of_text: [&str; 2], tile: u64) -> Candidate {
        let map = |f: &str| format!("join . mapGlb 0 (mapSeq {f}) . split n.t0");
        let of = passed(of_text);
        candidate_at(&format!("{} . {} . xs", map(of_text[0]), map(of_text[1])), &of, tile)
    }

    /// What two stages that follow each other read and give, if they compute these functions.
    fn passed(of: [&str; 2]) -> [Passed; 2] {
        let last = format!("{} . {}", of[0], of[1]);
        [
            Passed { read: Some(of[1].to_owned()), given: last },
            Passed { read: None, given: of[1].to_owned() },
        ]
    }

    /// A candidate with stages that read and give these values.
    fn candidate_at(text: &str, stages: &[Passed], tile: u64) -> Candidate {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        let compact = read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term");
        let mut env = dims();
        stages::Placed::default().apart(&compact).expect("well-typed").compact.visit(&mut |t| {
            for size in t.sizes() {
                size.visit(&mut |sym| {
                    env.entry(sym.clone()).or_insert(tile);
                });
            }
        });
        let stages = stages.iter().cloned().collect();
        let (term, skeleton) = (compact.clone(), String::new());
        Candidate { term, compact, env, skeleton, form: 0, stages, estimate_us: 1.0 }
    }

    fn dims() -> SizeEnv {
        SizeEnv::from_iter([(Sym::Dim("n".into()), 64)])
    }

    /// Adds candidates that were looked at, with the times of their kernels.
    fn joiner(known: &[(Candidate, &[f64])]) -> Joiner {
        let mut joiner = Joiner::new(16.0);
        known.iter().for_each(|(c, us)| joiner.add(c, Some(us), &dims()));
        joiner
    }

    /// The host runs the stage that reads the input first.
    #[test]
    fn stages_have_the_times_of_their_kernels() {
        let of = ["abs", "sqrt"];
        let joiner = joiner(&[(candidate(of, 4), &[7.0, 20.0]), (candidate(of, 8), &[9.0, 10.0])]);
        let times =
            |place: &Place| place.values().map(|us| us.expect("a time")).collect::<Vec<_>>();
        let places: Vec<Vec<f64>> = joiner.places.values().map(times).collect();
        assert_eq!(places, [[20.0, 10.0], [7.0, 9.0]]);
        let best = joiner.best(&joiner.families[0], &mut OfRuns::new());
        let paths = |last, first| vec![vec![(0, last), (1, first)]];
        assert_eq!(best, [(17.0, paths(1, 0)), (29.0, paths(0, 1))]);
    }

    /// Stages at the same place, of the same type, may compute different functions: the work is cut elsewhere.
    #[test]
    fn only_equal_functions_take_each_others_places() {
        let (one, other) = (["(sqrt . abs)", "abs"], ["abs", "(sqrt . abs)"]);
        let joined = |a: [&str; 2], b: [&str; 2]| -> Vec<String> {
            let known = [(a, 4, &[2.0, 3.0]), (a, 8, &[3.0, 2.0]), (b, 8, &[3.0, 2.0])];
            let known = known.map(|(of, tile, us)| (candidate(of, tile), &us[..]));
            joiner(&known).joined(&dims()).iter().map(|c| c.compact.to_string()).collect()
        };
        assert!(joined(one, one).len() == 2);
        // No candidate takes a root twice, or not at all.
        let texts = joined(one, other);
        assert!(!texts.is_empty() && texts.iter().all(|t| t.matches("sqrt").count() == 1));
    }

    /// The stages of one form may all be expected to take less time than those of another.
    #[test]
    fn every_form_has_places() {
        let of_form = |form: usize, of: [&'static str; 2], tiles: &'static [u64]| {
            let us = [&[2.0, 3.0][..], &[2.0, 3.0][..], &[200.0, 300.0][..]][form];
            tiles.iter().map(move |tile| (Candidate { form, ..candidate(of, *tile) }, us))
        };
        let tiles = &[1, 2, 4, 8, 16, 32];
        let cheap = of_form(0, ["abs", "sqrt"], tiles).chain(of_form(1, ["abs", "abs"], tiles));
        let known: Vec<_> = cheap.chain(of_form(2, ["sqrt", "abs"], &[4, 8])).collect();
        let joined = joiner(&known).joined(&dims());
        let count = |form: usize| joined.iter().filter(|c| c.form == form).count();
        assert!(count(0) + count(1) >= JOINED);
        assert_eq!(count(2), OF_FORM);
    }

    const GROUPS: &str = "join . mapWrg 0 (mapLcl 0 abs) . split n.t0";
    const ITEMS: &str = "join . mapGlb 0 (mapSeq sqrt) . split n.t0";

    /// The rest of the program may be cut in another way.
    #[test]
    fn a_stage_serves_every_family_with_its_place() {
        let of = ["abs", "sqrt"];
        let forked = format!("fork ({GROUPS}) id . {ITEMS} . xs");
        let known = [
            (candidate(of, 4), &[7.0, 20.0][..]),
            (candidate_at(&forked, &passed(of), 8), &[9.0, 10.0][..]),
        ];
        let joiner = joiner(&known);
        assert_eq!(joiner.families.len(), 2);
        let joined = joiner.joined(&dims());
        let best = &joined[0];
        assert!(best.compact.to_string().contains(&format!("{GROUPS} . {ITEMS}")), "{}", best.term);
        assert_eq!(best.estimate_us, 17.0);
        // Each stage has the values for which it was timed, under the names of its new place.
        let mut values: Vec<_> = best.env.iter().filter(|(s, _)| s.is_chosen()).collect();
        values.sort();
        let values: Vec<_> = values.into_iter().map(|(s, v)| format!("{s}={v}")).collect();
        assert_eq!(values, ["n.t0=8", "n'1.t0=4"]);
    }

    /// A stage without tiles counts, too.
    #[test]
    fn every_kernel_belongs_to_a_stage() {
        let of = ["abs", "sqrt"];
        let framed = format!("mapGlb 0 fst . zip . fork ({GROUPS}) id . {ITEMS} . xs");
        let last = Passed { read: Some("pairs".into()), given: "fst".into() };
        let three = candidate_at(&framed, &[&[last], &passed(of)[..]].concat(), 8);
        let mut joiner = joiner(&[(candidate(of, 4), &[7.0, 20.0])]);
        joiner.introduce(&[&three], &dims());
        // The time of the first stage is not known.
        assert!(joiner.joined(&dims()).iter().all(|c| !c.compact.to_string().contains("fst")));
        joiner.add(&three, Some(&[9.0, 10.0, 50.0]), &dims());
        let joined = joiner.joined(&dims());
        let with = joined.iter().find(|c| c.compact.to_string().contains("fst")).expect("joined");
        assert_eq!(with.estimate_us, 67.0);
    }

    /// Rows and columns of a matrix take different times to read.
    #[test]
    fn a_stage_reads_inputs_in_the_order_of_the_program() {
        let add = "join . mapGlb 0 (mapSeq (+)) . split n.t0 . zip";
        let text = format!("{add} . fork (reverse . xs) id . {ITEMS} . xs");
        let mut joiner = Joiner::new(16.0);
        joiner.introduce(&[&candidate_at(&text, &passed(["sum", "sqrt"]), 4)], &dims());
        let sources: Vec<String> =
            joiner.places.keys().map(|(_, source)| source.to_string()).collect();
        assert_eq!(sources, ["fork (reverse . xs) %read0", "id"]);
    }

    /// One stage makes in one kernel what others make in two, in another part of the program.
    #[test]
    fn one_stage_takes_the_place_of_two() {
        let of = ["abs", "sqrt"];
        let both = "join . mapGlb 0 (mapSeq (abs . sqrt)) . split n.t0";
        let whole = Passed { read: None, given: passed(of)[0].given.clone() };
        let other = |k: usize| Passed { read: None, given: format!("other {k}") };
        let [last, first] = passed(of);
        // Each candidate has a slow stage beside a fast one.
        let a = format!("fork ({ITEMS} . {ITEMS} . xs) ({both} . xs)");
        let b = format!("fork ({both} . xs) ({ITEMS} . {ITEMS} . xs)");
        let (x, y) = (Passed { read: Some("other 0".into()), given: "other 1".into() }, other(0));
        let a = candidate_at(&a, &[last, first, other(1)], 4);
        let b = candidate_at(&b, &[whole, x, y], 8);
        let known = [(a, &[30.0, 40.0, 5.0][..]), (b, &[6.0, 70.0, 80.0][..])];
        let joined = joiner(&known).joined(&dims());
        assert_eq!(joined[0].estimate_us, 11.0);
        assert_eq!(joined[0].compact.to_string(), format!("fork ({both} . xs) ({both} . xs)"));
    }

    /// The best stages of a long chain meet, too.
    #[test]
    fn all_stages_of_a_long_chain_are_joined() {
        let stage = "join . mapGlb 0 (mapSeq abs) . split n.t0";
        let text = format!("{} . xs", [stage; 8].join(" . "));
        let given = |k: usize| format!("abs {k}");
        let passed = |k: usize| Passed { read: (k > 1).then(|| given(k - 1)), given: given(k) };
        let of: Vec<Passed> = (1..=8).rev().map(passed).collect();
        let known = [
            (candidate_at(&text, &of, 4), &[1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0, 9.0][..]),
            (candidate_at(&text, &of, 8), &[9.0, 1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0][..]),
        ];
        assert_eq!(joiner(&known).joined(&dims())[0].estimate_us, 8.0);
    }

    #[test]
    fn a_slow_form_gets_no_second_value() {
        let of = passed(["abs", "sqrt"]);
        let text = |mapped: &str| format!("join . {mapped} . split n.t0");
        let fast = text("mapGlb 0 (mapSeq abs)");
        let first = text("mapGlb 0 (mapSeq sqrt)");
        let slow = text("mapWrg 0 (mapLcl 0 abs)");
        let candidates =
            [&fast, &slow].map(|last| candidate_at(&format!("{last} . {first} . xs"), &of, 4));
        let with = |tile| SizeEnv::from_iter([(Sym::Tile(Size::dim("n")), tile)]);
        let (mut joiner, mut values) = (Joiner::new(16.0), StageValues::new());
        joiner.introduce(&candidates.iter().collect::<Vec<_>>(), &dims());
        for c in &candidates {
            let (_, parts) = stages::frame(&c.compact).expect("well-typed");
            values.extend(parts.into_iter().map(|part| (part, [4, 8].map(with).to_vec())));
        }
        // The first round times all three stages.
        let of_round = |joiner: &mut Joiner, round, us: f64| -> Vec<String> {
            let alone = joiner.alone(round, &values, &dims()).expect("a round");
            for a in &alone {
                let is_slow = a.term.to_string().contains("mapLcl");
                joiner.timed(a, Some(if is_slow { us } else { 1.0 }));
            }
            alone.iter().map(|a| a.term.to_string()).collect()
        };
        for (us, second) in [(2.0, 3), (4.0, 2)] {
            let mut joiner = joiner.clone();
            assert_eq!(of_round(&mut joiner, 0, us).len(), 3);
            let terms = of_round(&mut joiner, 1, us);
            assert_eq!(terms.len(), second, "{terms:?}");
            assert_eq!(terms.iter().any(|t| t.contains("mapLcl")), us < 3.0);
            // A value that was not timed is expected to take as long as the one that was.
            assert_eq!(
                joiner.expected_us(
                    &candidate_at(&format!("{slow} . {first} . xs"), &of, 16),
                    &dims()
                ),
                Some(us + 1.0)
            );
        }
    }

    #[test]
    fn stages_are_timed_by_themselves() {
        let of = ["abs", "sqrt"];
        let mut joiner = Joiner::new(16.0);
        joiner.introduce(&[&candidate(of, 4)], &dims());
        let (_, parts) = stages::frame(&candidate(of, 8).compact).expect("well-typed");
        let with = |tile| SizeEnv::from_iter([(Sym::Tile(Size::dim("n")), tile)]);
        let tiles = [4, 8, 16, 32];
        let values: StageValues =
            parts.into_iter().map(|part| (part, tiles.map(with).to_vec())).collect();
        // The first rounds take a value of each stage each. The one that reads the other's result has an input.
        let mut alone = joiner.alone(0, &values, &dims()).expect("a round");
        alone.iter().for_each(|a| joiner.timed(a, Some(1.0)));
        alone.extend(joiner.alone(1, &values, &dims()).expect("a round"));
        joiner.forget_times();
        let texts: Vec<String> = alone.iter().map(|a| a.term.to_string()).collect();
        assert_eq!((alone.len(), texts.iter().filter(|t| t.contains("%read0")).count()), (4, 2));
        let tile = |a: &Alone| a.env[&Sym::Tile(Size::dim("n"))];
        let time = |joiner: &mut Joiner, alone: &[Alone]| {
            // The second stage has no kernels with a tile of 8.
            for a in alone {
                let fails = tile(a) == 8 && a.term.to_string().contains("%read0");
                joiner.timed(a, (!fails).then_some(tile(a) as f64));
            }
        };
        time(&mut joiner, &alone);
        let us = |joiner: &Joiner| -> Vec<f64> {
            joiner.joined(&dims()).iter().map(|c| c.estimate_us).collect()
        };
        assert_eq!(us(&joiner), [8.0, 12.0]);
        assert_eq!(joiner.expected_us(&candidate(of, 4), &dims()), Some(8.0));
        let never = Some(f64::INFINITY);
        assert_eq!(joiner.expected_us(&candidate(of, 8), &dims()), never, "it has no kernels");
        // Then other values, the first of both places before the second ones.
        let alone = joiner.alone(2, &values, &dims()).expect("a round");
        assert_eq!(alone.iter().map(tile).collect::<Vec<_>>(), [16, 16, 32, 32]);
        time(&mut joiner, &alone);
        assert_eq!(us(&joiner).len(), 12);
        joiner.forget_times();
        assert!(us(&joiner).is_empty());
    }
}
