//! Candidates of terms: each term with values for its symbols.
//!
//! Stages that share no symbol get their values one by one, so a stage that several terms have gets them once. All cores work on
//! different stages, and then on different terms.

use super::search::Found;
use super::tunables::{self, Target};
use super::{Candidate, Drawn, Dropped, Reason, cost, stages, written_out};
use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use crate::diag::{Limits, Result, on_all_cores};
use indexmap::IndexSet;
use std::collections::HashMap;

/// Assignments, most promising first. Those with a score come with the ratio of their expected cost to that of the best one.
pub(super) type Assigned = Vec<(SizeEnv, Option<f64>)>;

/// Most candidates of a term of several stages. Further values are tried for each stage by itself ([`super::Joiner`]).
const OF_SEVERAL: usize = 8;

/// What values depend on, and the values of the stages so far.
pub(super) struct Valued<'a> {
    pub env: &'a SizeEnv,
    pub target: &'a Target,
    pub limits: &'a Limits,
    /// See [`super::context::Context::total`].
    pub total: bool,
    /// The values of stages, as they stand in compact terms.
    pub known: HashMap<Term, Assigned>,
}

/// A term with its stages.
struct Staged {
    /// The expanded term, whose stages share no symbol.
    term: Term,
    /// The term that it is the expansion of.
    compact: Term,
    /// Its stages as they stand in the e-graph, if there are several.
    parts: Vec<Term>,
    /// The values of its dimensions, under all names.
    dims: SizeEnv,
}

impl Staged {
    fn of(
        compact: &Term,
        env: &SizeEnv,
        placed: &stages::Placed,
    ) -> std::result::Result<Staged, Reason> {
        let apart = placed.apart(compact).map_err(|_| Reason::IllTyped)?;
        let dims = stages::with_aliases(&apart.compact, env);
        let term = written_out(&apart.compact)?;
        let parts = match apart.parts.len() < 2 {
            true => vec![],
            false => stages::frame(compact).map_err(|_| Reason::IllTyped)?.1,
        };
        Ok(Staged { term, compact: apart.compact, parts, dims })
    }
}

impl Valued<'_> {
    /// Adds the candidates of terms to those drawn. Returns for each term whether it has any.
    ///
    /// # Errors
    /// [`crate::diag::Code::Interrupted`] when an interrupt was requested.
    pub fn candidates(&mut self, found: &[Found], drawn: &mut Drawn) -> Result<Vec<bool>> {
        let placed = stages::Placed::default();
        let all = on_all_cores(found, |f| Staged::of(&f.compact, self.env, &placed));
        self.limits.interrupt.check("while drawing candidates")?;
        let parts = all.iter().flatten().flat_map(|staged| &staged.parts);
        let new: IndexSet<&Term> = parts.filter(|p| !self.known.contains_key(*p)).collect();
        let new: Vec<&Term> = new.into_iter().collect();
        let own = on_all_cores(&new, |part| {
            let mut dropped = Dropped::default();
            let values = |term: Term| self.assigned(&term, part, self.env, &mut dropped);
            (written_out(part).map(values), dropped)
        });
        for (part, (values, dropped)) in new.into_iter().zip(own) {
            drawn.dropped.extend(&dropped);
            self.known.insert(part.clone(), values.unwrap_or_default());
        }
        self.limits.interrupt.check("while drawing candidates")?;
        let terms: Vec<(&Found, std::result::Result<Staged, Reason>)> =
            found.iter().zip(all).collect();
        let made = on_all_cores(&terms, |(found, staged)| {
            let mut dropped = Dropped::default();
            let staged = staged.as_ref().map_err(|reason| *reason);
            (staged.and_then(|s| self.of_term(found, s, &mut dropped)), dropped)
        });
        self.limits.interrupt.check("while drawing candidates")?;
        let mut has_candidates = vec![];
        for (made, dropped) in made {
            drawn.dropped.extend(&dropped);
            has_candidates.push(made.is_ok());
            match made {
                Ok(candidates) => drawn.candidates.extend(candidates),
                Err(reason) => drawn.dropped.add(reason),
            }
        }
        Ok(has_candidates)
    }

    fn assigned(
        &self,
        term: &Term,
        compact: &Term,
        dims: &SizeEnv,
        dropped: &mut Dropped,
    ) -> Assigned {
        tunables::assignments(term, compact, dims, self.target, self.limits, self.total, dropped)
    }

    /// Returns the candidates of one term.
    fn of_term(
        &self,
        found: &Found,
        staged: &Staged,
        dropped: &mut Dropped,
    ) -> std::result::Result<Vec<Candidate>, Reason> {
        let assigned = match staged.parts.as_slice() {
            [] => self.assigned(&staged.term, &staged.compact, &staged.dims, dropped),
            parts => self.joined(parts, &staged.dims),
        };
        if assigned.is_empty() {
            return Err(Reason::NoValues);
        }
        // The additive estimate cannot tell tile sizes apart: tiled assignments are ordered by their score of
        // reuse.
        let term = &staged.term;
        let costs: Vec<f64> =
            assigned.iter().map(|(env, _)| cost::of_term(term, env, self.target)).collect();
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let candidate = |((env, times), cost): ((SizeEnv, Option<f64>), f64)| Candidate {
            term: term.clone(),
            compact: found.compact.clone(),
            estimate_us: times.map_or(cost, |t| t * least),
            env,
            skeleton: found.skeleton.clone(),
            form: found.form,
            stages: found.stages.clone(),
        };
        Ok(assigned.into_iter().zip(costs).map(candidate).collect())
    }

    /// Returns values for the symbols of all stages. The first assignment combines the best of each stage, the second one the
    /// second best of each stage, and so on.
    fn joined(&self, parts: &[Term], dims: &SizeEnv) -> Assigned {
        let own: Vec<&Assigned> = parts.iter().filter_map(|p| self.known.get(p)).collect();
        let numbers = stages::numbers(parts);
        let most = own.iter().map(|values| values.len()).max().unwrap_or(0).min(OF_SEVERAL);
        // A stage without values leaves the term without any.
        let nth = |i: usize| {
            let mut env = dims.clone();
            let mut times: Option<f64> = None;
            for (values, k) in own.iter().zip(&numbers) {
                let (own, t) = values.get(i % values.len().max(1))?;
                let chosen = own.iter().filter(|(s, _)| s.is_chosen());
                env.extend(chosen.map(|(s, v)| (stages::numbered(s, *k), *v)));
                times = t.map_or(times, |t: f64| Some(times.map_or(t, |u: f64| u.max(t))));
            }
            Some((env, times))
        };
        (0..most).map_while(nth).collect()
    }
}
