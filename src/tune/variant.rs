//! From candidate terms to kernels that can be built, ranked by a model of the kernel.
//!
//! Kernels are generated on demand, since there are more candidates than a search looks at. Candidates whose
//! kernels turn out to be the same text are one variant. Never runs anything.

use super::cores::on_all_cores;
use crate::calculus::size::{SizeEnv, Sym};
use crate::calculus::term::Term;
use crate::device::cost_model::CostModel;
use crate::diag::{Code, Diagnostic};
use crate::extract::Candidate;
use crate::kernel::{self, Options};
use crate::opencl;
use crate::opencl::plan::HostPlan;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A candidate with its kernels.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The low-level term.
    pub term: Term,
    /// The term as it stands in the e-graph, when it comes from one: `chunked` and `packed` not written out.
    pub compact: Option<Term>,
    /// The value of every symbol in it.
    pub env: SizeEnv,
    /// What tells it from others apart from tunables.
    pub skeleton: String,
    /// Its kernels.
    pub plan: Arc<HostPlan>,
    /// Hash of the plan: names the variant in the tuning store.
    pub hash: String,
    /// Time the cost model predicts, in microseconds.
    pub predicted_us: f64,
    /// What bounds it, by the model, in a word or two.
    pub bound: String,
}

impl Variant {
    /// Generates the kernels of a term, and predicts their time.
    ///
    /// # Errors
    /// When no kernel can be generated for it, or it exceeds a limit.
    pub fn new(
        term: &Term,
        env: &SizeEnv,
        skeleton: &str,
        options: &Options,
        model: &CostModel,
    ) -> Result<Variant, Box<Diagnostic>> {
        let program = kernel::lower(term, env, options)?;
        let prediction = kernel::estimate(&kernel::profile::profile(&program), model);
        let plan = opencl::print::print(&program);
        Ok(Variant {
            term: term.clone(),
            compact: None,
            env: env.clone(),
            skeleton: skeleton.to_owned(),
            hash: hash(&plan)?,
            plan: Arc::new(plan),
            predicted_us: prediction.us,
            bound: prediction.bound.to_string(),
        })
    }

    /// The value of each tunable.
    pub fn tunables(&self) -> BTreeMap<String, u64> {
        tunables(&self.env)
    }
}

/// What names a plan in the tuning store and in files.
///
/// # Errors
/// Never: it is plain data.
pub fn hash(plan: &HostPlan) -> Result<String, Diagnostic> {
    let text = serde_json::to_vec(plan).map_err(|e| {
        Diagnostic::error(Code::Internal, format!("a host plan cannot be written: {e}"))
    })?;
    Ok(blake3::hash(&text).to_hex()[..16].to_owned())
}

/// Why there is no kernel, without the names and indices that differ from candidate to candidate.
pub fn reason(d: &Diagnostic) -> String {
    let parts = d.message.split('`').enumerate();
    let text: String = parts.map(|(i, part)| if i % 2 == 0 { part } else { "..." }).collect();
    format!("{}: {text}", d.code)
}

/// The symbols of an environment that a search chooses.
pub fn tunables(env: &SizeEnv) -> BTreeMap<String, u64> {
    env.iter()
        .filter(|(s, _)| match s {
            Sym::Tile(_) | Sym::Width(_) => true,
            // What is rounded up follows from the tiles.
            Sym::Dim(_) | Sym::Round(_) | Sym::Meta(_) => false,
        })
        .map(|(s, v)| (s.to_string(), *v))
        .collect()
}

/// Candidates, each turned into a variant when it is asked for.
pub struct Pool<'a> {
    candidates: &'a [Candidate],
    options: &'a Options,
    model: &'a CostModel,
    /// Candidates that have been looked at.
    seen: HashSet<usize>,
    /// Hashes of the plans there are.
    plans: HashSet<String>,
    /// Candidates whose plan another had already.
    duplicates: usize,
    rejected: BTreeMap<String, usize>,
}

impl<'a> Pool<'a> {
    /// A pool of candidates, best first.
    pub fn new(
        candidates: &'a [Candidate],
        options: &'a Options,
        model: &'a CostModel,
    ) -> Pool<'a> {
        Pool {
            candidates,
            options,
            model,
            seen: HashSet::new(),
            plans: HashSet::new(),
            duplicates: 0,
            rejected: BTreeMap::new(),
        }
    }

    /// Candidates for which kernels have been generated, all different.
    pub fn lowered(&self) -> usize {
        self.plans.len()
    }

    /// Candidates whose kernels were another candidate's.
    pub fn duplicates(&self) -> usize {
        self.duplicates
    }

    /// Candidates without kernels, by reason.
    pub fn rejected(&self) -> &BTreeMap<String, usize> {
        &self.rejected
    }

    /// All candidates, best first.
    pub fn candidates(&self) -> &'a [Candidate] {
        self.candidates
    }

    /// Looks at no more than `most` candidates that `wanted` accepts and no earlier call has looked at:
    /// the best `each` of each skeleton first, then the rest. The variants, best prediction first.
    pub fn draw(
        &mut self,
        most: usize,
        each: usize,
        wanted: impl Fn(&Candidate) -> bool,
        go_on: impl Fn() -> bool,
    ) -> Vec<Variant> {
        let mut of_skeleton: HashMap<&str, usize> = HashMap::new();
        let (mut first, mut rest) = (vec![], vec![]);
        for (i, c) in self.candidates.iter().enumerate() {
            if self.seen.contains(&i) || !wanted(c) {
                continue;
            }
            let count = of_skeleton.entry(&c.skeleton).or_default();
            *count += 1;
            if *count <= each { first.push(i) } else { rest.push(i) }
        }
        let chosen: Vec<usize> = first.into_iter().chain(rest).take(most).collect();
        let mut drawn: Vec<Variant> =
            self.take(&chosen, &go_on).into_iter().map(|(_, v)| v).collect();
        // Stable: candidates with equal predictions stay in the order of the additive estimate.
        drawn.sort_by(|a, b| a.predicted_us.total_cmp(&b.predicted_us));
        drawn
    }

    /// The variants of the candidates with these numbers, in this order, each with its number; without
    /// those that were looked at before, those without kernels, and those with another's. Kernels are generated by all cores.
    pub fn take(&mut self, numbers: &[usize], go_on: &dyn Fn() -> bool) -> Vec<(usize, Variant)> {
        let fresh: Vec<usize> = numbers.iter().copied().filter(|i| self.seen.insert(*i)).collect();
        let (candidates, options, model) = (self.candidates, self.options, self.model);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut out = vec![];
        for share in fresh.chunks(CHUNK * cores) {
            if !go_on() {
                for i in share {
                    self.seen.remove(i);
                }
                continue;
            }
            let lower = |i: &usize| {
                let c = &candidates[*i];
                Variant::new(&c.term, &c.env, &c.skeleton, options, model)
            };
            let made = on_all_cores(share, lower);
            for (i, made) in share.iter().zip(made) {
                match made {
                    Ok(v) if self.plans.insert(v.hash.clone()) => {
                        let compact = Some(candidates[*i].compact.clone());
                        out.push((*i, Variant { compact, ..v }));
                    }
                    Ok(_) => self.duplicates += 1,
                    Err(d) => *self.rejected.entry(reason(&d)).or_default() += 1,
                }
            }
        }
        out
    }
}

/// Kernels that a core generates before anybody is asked whether to go on.
const CHUNK: usize = 4;
