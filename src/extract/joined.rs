//! Joins the best stages of different candidates.
//!
//! Extraction keeps a few dozen terms of a program, and each term has a few hundred values for its tiles. Where a program has
//! several stages, these are combinations of stages and values, and the best of each stage may meet only in one that was not
//! kept. The times of stages add up. So new candidates join the stages that take the least time. If each stage is one kernel, its
//! time is known; otherwise it follows from the times of all kernels of the combinations that are known. Only stages that read and give the same values take each
//! other's places: two candidates may cut a program at different places between the same types.
//!
//! A stage has more values for its tiles than there are candidates with it. So other values are tried for the stages that take
//! most of the time of the best candidate ([`Joiner::other_values`]).

use super::{Candidate, search, stages, written_out};
use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use indexmap::{IndexMap, IndexSet};
use std::collections::HashMap;
use std::sync::Arc;

/// The values for the tiles of each stage, most promising first. Symbols are renamed as in [`stages::apart`].
pub type StageValues = HashMap<Term, Vec<SizeEnv>>;

/// Stages of one place that are joined with those of other places.
const BEST: usize = 6;
/// Most candidates that are joined.
const JOINED: usize = 24;
/// Stages of one place for which other values are tried, and most values that are tried at a time for each of them.
const FORMS: usize = 3;
const VALUES: usize = 12;
/// Share of a candidate's time from which other values are tried for a stage.
const MUCH: f64 = 0.15;
/// Steps in which the shares of stages are found.
const STEPS: usize = 40;

/// A stage of a candidate with the values of its tiles.
struct Stage {
    /// The stage as it stands in the candidate's compact term.
    part: Term,
    /// The same with symbols of its own.
    renamed: Term,
    /// The values of its symbols.
    own: SizeEnv,
}

impl Stage {
    /// Returns a text that equal stages with equal values share.
    fn text(&self) -> String {
        let mut values: Vec<_> = self.own.iter().collect();
        values.sort();
        let values: Vec<String> = values.iter().map(|(s, v)| format!("{s}={v}")).collect();
        format!("{} {}", self.renamed, values.join(" "))
    }
}

/// Candidates whose stages can take each other's places.
struct Family {
    frame: Term,
    /// The form of the program that the first of them was found as, and what their stages read and give.
    form: usize,
    values: Arc<[String]>,
    /// The different stages of each place, by text and values.
    stages: Vec<IndexMap<String, Stage>>,
    /// The places in the order in which the host runs them; `None` if it runs some of them in a loop.
    order: Option<Vec<usize>>,
    /// The stages of each candidate as indices into `stages`, with its times if it has kernels.
    known: Vec<(Vec<usize>, Option<Times>)>,
}

/// The times of a candidate, in microseconds.
struct Times {
    all: f64,
    /// The time of each stage, if each is one kernel.
    stages: Option<Vec<f64>>,
}

/// The stages of candidates whose times are known.
#[derive(Default)]
pub struct Joiner {
    families: IndexMap<String, Family>,
}

impl Joiner {
    /// Adds a candidate with the times of its kernels in microseconds, in the order in which they run, if it has kernels.
    pub fn add(&mut self, c: &Candidate, kernels_us: Option<&[f64]>) {
        add(c, kernels_us, &mut self.families);
    }

    /// Returns candidates that join stages of those added, best first. `dims` gives the values of the program's dimensions.
    pub fn joined(&self, dims: &SizeEnv) -> Vec<Candidate> {
        let mut out: Vec<(&Family, f64, Vec<usize>)> = vec![];
        for family in self.families.values() {
            let best = family.best(&family.shares());
            out.extend(best.into_iter().map(|(us, choice)| (family, us, choice)));
        }
        out.sort_by(|a, b| a.1.total_cmp(&b.1));
        out.truncate(JOINED);
        out.iter().filter_map(|(family, us, choice)| family.candidate(choice, *us, dims)).collect()
    }

    /// Returns the best candidate with other values for one of the stages that take much of its time; for the same stage also the
    /// best forms that others have in its place.
    pub fn other_values(&mut self, values: &StageValues, dims: &SizeEnv) -> Vec<Candidate> {
        let best = self.families.values_mut().filter_map(|f| Some((f.least()?, f)));
        let Some((_, family)) = best.min_by(|a, b| a.0.total_cmp(&b.0)) else { return vec![] };
        let choices = family.other_values(values);
        choices.iter().filter_map(|c| family.candidate(c, f64::INFINITY, dims)).collect()
    }
}

/// Adds a candidate to its family, if it has several stages with symbols of their own.
fn add(c: &Candidate, kernels_us: Option<&[f64]>, families: &mut IndexMap<String, Family>) {
    let Ok((frame, parts)) = stages::frame(&c.compact) else { return };
    if parts.len() < 2 {
        return;
    }
    let Ok(apart) = stages::apart(&c.compact) else { return };
    if stages::share_symbols(&apart.parts) {
        return;
    }
    let family =
        families.entry(format!("{frame} {}", c.stages.join(" "))).or_insert_with(|| Family {
            order: stages::order(&frame),
            frame,
            form: c.form,
            values: c.stages.clone(),
            stages: parts.iter().map(|_| IndexMap::new()).collect(),
            known: vec![],
        });
    let mut choice = vec![];
    for ((place, part), renamed) in family.stages.iter_mut().zip(parts).zip(&apart.parts) {
        let own = own_values(renamed, &c.env);
        let stage = Stage { part, renamed: renamed.clone(), own };
        let entry = place.entry(stage.text());
        choice.push(entry.index());
        entry.or_insert(stage);
    }
    let times = kernels_us.map(|us| Times { all: us.iter().sum(), stages: family.of_stages(us) });
    family.known.push((choice, times));
}

/// Returns the values of the symbols in a stage.
fn own_values(stage: &Term, env: &SizeEnv) -> SizeEnv {
    let mut own = SizeEnv::default();
    stage.visit(&mut |t| {
        for s in t.sizes() {
            s.visit(&mut |sym| {
                if let (true, Some(value)) = (sym.is_chosen(), env.get(sym)) {
                    own.insert(sym.clone(), *value);
                }
            });
        }
    });
    own
}

impl Family {
    /// Returns the time of each stage, in the order of places, if each is one kernel.
    fn of_stages(&self, kernels_us: &[f64]) -> Option<Vec<f64>> {
        let order = self.order.as_ref().filter(|order| order.len() == kernels_us.len())?;
        let mut out = vec![0.0; order.len()];
        order.iter().zip(kernels_us).for_each(|(place, us)| out[*place] = *us);
        Some(out)
    }

    /// Returns the candidates with times.
    fn timed(&self) -> impl Iterator<Item = (&Vec<usize>, &Times)> {
        self.known.iter().filter_map(|(choice, times)| Some((choice, times.as_ref()?)))
    }

    /// Returns the share of each stage in the times. If it is not known as the time of a kernel, it is the one with which the sums
    /// come closest to the known times, found place by place. A stage without a known time has an infinite share.
    fn shares(&self) -> Vec<Vec<f64>> {
        let timed: Vec<(&Vec<usize>, f64)> = self.timed().map(|(c, t)| (c, t.all)).collect();
        let least = timed.iter().map(|(_, us)| *us).fold(f64::INFINITY, f64::min);
        let each = least / self.stages.len() as f64;
        let mut known: Vec<Vec<Option<f64>>> =
            self.stages.iter().map(|s| vec![None; s.len()]).collect();
        for (choice, times) in self.timed() {
            for (place, us) in times.stages.iter().flatten().enumerate() {
                known[place][choice[place]] = Some(*us);
            }
        }
        let of = |place: &Vec<Option<f64>>| place.iter().map(|us| us.unwrap_or(each)).collect();
        let mut shares: Vec<Vec<f64>> = known.iter().map(of).collect();
        let steps = if known.iter().flatten().all(Option::is_some) { 0 } else { STEPS };
        for _ in 0..steps {
            for place in 0..self.stages.len() {
                let mut sums = vec![(0.0, 0.0); self.stages[place].len()];
                for (choice, us) in &timed {
                    let others = choice.iter().enumerate().filter(|(k, _)| *k != place);
                    let rest: f64 = others.map(|(k, i)| shares[k][*i]).sum();
                    // What is slow says little about what is fast.
                    let weight = 1.0 / (us * us).max(f64::MIN_POSITIVE);
                    let (sum, count) = &mut sums[choice[place]];
                    *sum += weight * (us - rest).max(0.0);
                    *count += weight;
                }
                let found = sums.into_iter().zip(&known[place]);
                for (share, ((sum, count), known)) in shares[place].iter_mut().zip(found) {
                    let fitted = if count > 0.0 { sum / count } else { f64::INFINITY };
                    *share = known.unwrap_or(fitted);
                }
            }
        }
        shares
    }

    /// Returns the combinations with the least sums that are not known, best first, with their sums.
    fn best(&self, shares: &[Vec<f64>]) -> Vec<(f64, Vec<usize>)> {
        let mut found: Vec<(f64, Vec<usize>)> = vec![(0.0, vec![])];
        for place in shares {
            let mut order: Vec<usize> = (0..place.len()).collect();
            order.sort_by(|a, b| place[*a].total_cmp(&place[*b]));
            order.truncate(BEST);
            found = found
                .iter()
                .flat_map(|(us, before)| {
                    order.iter().map(move |i| {
                        (us + place[*i], before.iter().copied().chain([*i]).collect())
                    })
                })
                .collect();
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            found.truncate(JOINED * BEST);
        }
        let known: IndexSet<&Vec<usize>> = self.known.iter().map(|(choice, _)| choice).collect();
        found.retain(|(us, choice)| us.is_finite() && !known.contains(choice));
        found.truncate(JOINED);
        found
    }

    /// Returns the least known time.
    fn least(&self) -> Option<f64> {
        self.timed().map(|(_, times)| times.all).min_by(f64::total_cmp)
    }

    /// Adds stages with values that none has so far, and returns the combinations of each with the stages of the best candidate.
    fn other_values(&mut self, values: &StageValues) -> Vec<Vec<usize>> {
        let Some((best, times)) = self.timed().min_by(|a, b| a.1.all.total_cmp(&b.1.all)) else {
            return vec![];
        };
        let (best, us, shares) = (best.clone(), times.all, self.shares());
        let mut out = vec![];
        for (k, place) in self.stages.iter_mut().enumerate() {
            if shares[k][best[k]] < MUCH * us {
                continue;
            }
            let mut order: Vec<usize> =
                (0..shares[k].len()).filter(|i| shares[k][*i].is_finite()).collect();
            order.sort_by(|a, b| shares[k][*a].total_cmp(&shares[k][*b]));
            let stage =
                |i: &usize| place.get_index(*i).map(|(_, s)| (s.renamed.clone(), s.part.clone()));
            let forms: IndexMap<Term, Term> = order.iter().filter_map(stage).collect();
            for (renamed, part) in forms.into_iter().take(FORMS) {
                let all = values.get(&renamed).into_iter().flatten().map(|env| Stage {
                    part: part.clone(),
                    renamed: renamed.clone(),
                    own: own_values(&renamed, env),
                });
                let mut fresh = 0;
                for stage in all {
                    let text = stage.text();
                    if fresh == VALUES {
                        break;
                    }
                    if !place.contains_key(&text) {
                        fresh += 1;
                        let (i, _) = place.insert_full(text, stage);
                        let mut choice = best.clone();
                        choice[k] = i;
                        out.push(choice);
                    }
                }
            }
        }
        out
    }

    /// Returns the candidate with these stages.
    fn candidate(&self, choice: &[usize], us: f64, dims: &SizeEnv) -> Option<Candidate> {
        let chosen: Vec<&Stage> =
            self.stages.iter().zip(choice).filter_map(|(s, i)| Some(s.get_index(*i)?.1)).collect();
        let parts: Vec<&Term> = chosen.iter().map(|s| &s.part).collect();
        let compact = stages::framed(&self.frame, &parts).ok()?;
        let apart = stages::apart(&compact).ok()?;
        let term = written_out(&apart.compact).ok()?;
        let mut env = stages::with_aliases(&apart.compact, dims);
        for stage in &chosen {
            env.extend(stage.own.iter().map(|(s, v)| (s.clone(), *v)));
        }
        let skeleton = search::skeleton_text(&term);
        let (form, stages) = (self.form, self.values.clone());
        Some(Candidate { term, compact, env, skeleton, form, stages, estimate_us: us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::{Size, Sym};
    use crate::calculus::text::{Context, read_term};
    use crate::calculus::ty::Ty;
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    /// A family of two places with these shares, of which only some combinations are known.
    fn family(shares: [&[f64]; 2], known: &[[usize; 2]]) -> Family {
        let stage = |k: usize| {
            (k.to_string(), {
                let (part, renamed) = (Term::id(&Ty::Unit), Term::id(&Ty::Unit));
                Stage { part, renamed, own: SizeEnv::default() }
            })
        };
        let time = |c: &[usize; 2]| {
            let all = shares[0][c[0]] + shares[1][c[1]];
            (c.to_vec(), Some(Times { all, stages: None }))
        };
        Family {
            form: 0,
            values: [].into(),
            frame: Term::id(&Ty::Unit),
            order: None,
            stages: shares.iter().map(|s| (0..s.len()).map(stage).collect()).collect(),
            known: known.iter().map(time).collect(),
        }
    }

    #[test]
    fn the_best_stages_meet() {
        // The best of each place, 1 and 2, are known only beside slow ones.
        let shares = [&[900.0, 10.0, 300.0][..], &[500.0, 700.0, 20.0][..]];
        let mut family = family(shares, &[[0, 0], [0, 2], [1, 0], [2, 1], [2, 2]]);
        let best = family.best(&family.shares());
        assert_eq!(best[0].1, [1, 2]);
        assert!((best[0].0 - 30.0).abs() < 5.0, "{}", best[0].0);
        // A combination without kernels is not proposed again.
        family.known.push((vec![1, 2], None));
        assert!(family.best(&family.shares()).iter().all(|(_, c)| c != &[1, 2]));
    }

    /// A candidate of two kernels that map these functions, with this length of all tiles.
    fn candidate(of: [&str; 2], tile: u64) -> Candidate {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        let map = |f: &str| format!("join . mapGlb 0 (mapSeq {f}) . split n.t0");
        let text = format!("{} . {} . xs", map(of[0]), map(of[1]));
        let compact = read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term");
        let mut env = dims();
        stages::apart(&compact).expect("well-typed").compact.visit(&mut |t| {
            for size in t.sizes() {
                size.visit(&mut |sym| {
                    env.entry(sym.clone()).or_insert(tile);
                });
            }
        });
        let stages = of.iter().map(|f| (*f).to_owned()).collect();
        let (term, skeleton) = (compact.clone(), String::new());
        Candidate { term, compact, env, skeleton, form: 0, stages, estimate_us: 1.0 }
    }

    fn dims() -> SizeEnv {
        SizeEnv::from_iter([(Sym::Dim("n".into()), 64)])
    }

    /// The host runs the stage that reads the input first.
    #[test]
    fn stages_have_the_times_of_their_kernels() {
        let mut joiner = Joiner::default();
        let of = ["abs", "sqrt"];
        joiner.add(&candidate(of, 4), Some(&[7.0, 20.0]));
        joiner.add(&candidate(of, 8), Some(&[9.0, 10.0]));
        let family = joiner.families.values().next().expect("a family");
        assert_eq!(family.shares(), [[20.0, 10.0], [7.0, 9.0]]);
        assert_eq!(family.best(&family.shares()), [(17.0, vec![1, 0]), (29.0, vec![0, 1])]);
    }

    /// Stages at the same place, of the same type, may compute different functions: the work is cut elsewhere.
    #[test]
    fn only_equal_functions_take_each_others_places() {
        let joined = |known: &[(Candidate, f64)]| {
            let mut joiner = Joiner::default();
            known.iter().for_each(|(c, us)| joiner.add(c, Some(&[*us])));
            joiner.joined(&dims()).len()
        };
        let (one, other) = (["(sqrt . abs)", "abs"], ["abs", "(sqrt . abs)"]);
        assert_eq!(joined(&[(candidate(one, 4), 5.0), (candidate(other, 4), 6.0)]), 0);
        assert!(joined(&[(candidate(one, 4), 5.0), (candidate(one, 8), 6.0)]) > 0);
    }
    #[test]
    fn slow_stages_get_other_values() {
        let mut joiner = Joiner::default();
        let of = ["abs", "sqrt"];
        joiner.add(&candidate(of, 4), Some(&[20.0]));
        joiner.add(&candidate(of, 8), Some(&[10.0]));
        let apart = stages::apart(&candidate(of, 8).compact).expect("well-typed");
        let with = |k: usize, tile| own_values(&apart.parts[k], &candidate(of, tile).env);
        let values: StageValues = (0..2)
            .map(|k| (apart.parts[k].clone(), vec![with(k, 8), with(k, 16), with(k, 32)]))
            .collect();
        let tiles = |c: &Candidate| -> Vec<u64> {
            let mut own: Vec<_> = c.env.iter().filter(|(s, _)| s.is_chosen()).collect();
            own.sort();
            own.into_iter().map(|(_, v)| *v).collect()
        };
        let mut found: Vec<Vec<u64>> =
            joiner.other_values(&values, &dims()).iter().map(tiles).collect();
        found.sort();
        // The other stage keeps the value that it has in the best candidate.
        assert_eq!(found, [[8, 16], [8, 32], [16, 8], [32, 8]]);
        // They are proposed once.
        assert!(joiner.other_values(&values, &dims()).is_empty());
    }
}
