//! Joins the best stages of different candidates.
//!
//! Extraction keeps a few dozen terms of a program, and each term has a few hundred values for its tiles. Where a program has
//! several stages, these are combinations of stages and values, and the best of each stage may meet only in one that was not
//! kept. The times of stages add up. So new candidates join the stages that take the least time. If each stage is one kernel, its
//! time is known; otherwise it follows from the times of all kernels of the combinations that are known. Only stages that read and
//! give the same values take each other's places: two candidates may cut a program at different places between the same types.
//!
//! A candidate without kernels may be so for one of its stages. The others get a time in the company of the best
//! ([`Joiner::untimed`]).
//!
//! A stage has more values for its tiles than there are candidates with it. So other values are tried for the stages that take
//! most of the time of the best candidate ([`Joiner::other_values`]).

use super::{Candidate, search, stages, written_out};
use crate::calculus::size::SizeEnv;
use crate::calculus::term::Term;
use indexmap::{IndexMap, IndexSet};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The values for the tiles of each stage as it stands in a compact term, most promising first.
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

/// A stage with the values of its tiles, as it stands in a compact term: its symbols are not renamed.
struct Stage {
    part: Term,
    values: SizeEnv,
    /// Its least known time in microseconds, if it is one kernel.
    us: Option<f64>,
}

impl Stage {
    /// Returns a text that equal stages with equal values share.
    fn text(&self) -> String {
        let mut values: Vec<_> = self.values.iter().collect();
        values.sort();
        let values: Vec<String> = values.iter().map(|(s, v)| format!("{s}={v}")).collect();
        format!("{} {}", self.part, values.join(" "))
    }
}

/// The different stages that read and give the same values, by text.
type Place = IndexMap<String, Stage>;

/// Candidates that differ in their stages alone.
struct Family {
    frame: Term,
    /// The form of the program that the first of them was found as, and what their stages read and give.
    form: usize,
    values: Arc<[String]>,
    /// Where each stage stands, as an index into [`Joiner::places`].
    places: Vec<usize>,
    /// The stages in the order in which the host runs them; `None` if it runs some of them in a loop.
    order: Option<Vec<usize>>,
    /// The stages of each candidate as indices into its places, with its times if it has kernels.
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
    /// The stages, by what they read and give.
    places: IndexMap<String, Place>,
    families: IndexMap<String, Family>,
    /// The stages that [`Joiner::untimed`] gave, with their places.
    tried: HashSet<(usize, Term)>,
}

impl Joiner {
    /// Adds a candidate with the times of its kernels in microseconds, in the order in which they run, if it has kernels. Leaves
    /// it out if it has not several stages with symbols of their own.
    pub fn add(&mut self, c: &Candidate, kernels_us: Option<&[f64]>) {
        let Ok((frame, parts)) = stages::frame(&c.compact) else { return };
        if parts.len() < 2 || parts.len() != c.stages.len() {
            return;
        }
        let Ok(apart) = stages::apart(&c.compact) else { return };
        if stages::share_symbols(&apart.parts) {
            return;
        }
        let (mut places, mut choice) = (vec![], vec![]);
        for (k, (part, at)) in parts.into_iter().zip(c.stages.iter()).enumerate() {
            let entry = self.places.entry(at.clone());
            places.push(entry.index());
            let stage = Stage { values: stages::values_at(&part, k, &c.env), part, us: None };
            let entry = entry.or_default().entry(stage.text());
            choice.push(entry.index());
            entry.or_insert(stage);
        }
        let family =
            self.families.entry(format!("{frame} {}", c.stages.join(" "))).or_insert_with(|| {
                let order = stages::order(&frame);
                let (form, values, known) = (c.form, c.stages.clone(), vec![]);
                Family { frame, form, values, places, order, known }
            });
        let times =
            kernels_us.map(|us| Times { all: us.iter().sum(), stages: family.of_stages(us) });
        let own = times.iter().flat_map(|t| t.stages.iter().flatten());
        for ((place, i), us) in family.places.iter().zip(&choice).zip(own) {
            let known = &mut self.places[*place][*i].us;
            *known = Some(known.map_or(*us, |least| least.min(*us)));
        }
        family.known.push((choice, times));
    }

    /// Returns candidates that join stages of those added, best first. `dims` gives the values of the program's dimensions.
    pub fn joined(&self, dims: &SizeEnv) -> Vec<Candidate> {
        let mut out: Vec<(&Family, f64, Vec<usize>)> = vec![];
        for family in self.families.values() {
            let best = family.best(&family.shares(&self.places));
            out.extend(best.into_iter().map(|(us, choice)| (family, us, choice)));
        }
        out.sort_by(|a, b| a.1.total_cmp(&b.1));
        out.truncate(JOINED);
        let candidate = |(family, us, choice): &(&Family, f64, Vec<usize>)| {
            self.candidate(family, choice, *us, dims)
        };
        out.iter().filter_map(candidate).collect()
    }

    /// Returns candidates in which each stage that no candidate with kernels has stands among the stages of the best candidate
    /// with its place. Each is returned once, with one choice of values.
    pub fn untimed(&mut self, dims: &SizeEnv) -> Vec<Candidate> {
        let timed: HashSet<(usize, Term)> = (self.families.values())
            .flat_map(|f| f.timed().map(move |(choice, _)| (f, choice)))
            .flat_map(|(f, choice)| f.places.iter().copied().zip(choice.iter().copied()))
            .collect::<HashSet<(usize, usize)>>()
            .into_iter()
            .map(|(place, i)| (place, self.places[place][i].part.clone()))
            .collect();
        let mut best: Vec<(&Family, &Vec<usize>, f64)> = (self.families.values())
            .filter_map(|f| f.fastest().map(|(choice, times)| (f, choice, times.all)))
            .collect();
        best.sort_by(|a, b| a.2.total_cmp(&b.2));
        let mut out = vec![];
        for (place, stages) in self.places.values().enumerate() {
            let beside = best.iter().find_map(|(family, choice, _)| {
                Some((*family, *choice, family.places.iter().position(|p| *p == place)?))
            });
            let Some((family, choice, k)) = beside else { continue };
            for (i, stage) in stages.values().enumerate() {
                let stage = (place, stage.part.clone());
                if !timed.contains(&stage) && self.tried.insert(stage) {
                    let mut choice = choice.clone();
                    choice[k] = i;
                    out.extend(self.candidate(family, &choice, f64::INFINITY, dims));
                }
            }
        }
        out
    }

    /// Returns the best candidate with other values for one of the stages that take much of its time; for the same stage also the
    /// best forms that others have in its place.
    pub fn other_values(&mut self, values: &StageValues, dims: &SizeEnv) -> Vec<Candidate> {
        let best = self.families.values().filter_map(|f| Some((f.fastest()?.1.all, f)));
        let Some((_, family)) = best.min_by(|a, b| a.0.total_cmp(&b.0)) else { return vec![] };
        let choices = family.other_values(&mut self.places, values);
        let candidate = |c: &Vec<usize>| self.candidate(family, c, f64::INFINITY, dims);
        choices.iter().filter_map(candidate).collect()
    }

    /// Returns the candidate of a family with these stages.
    fn candidate(
        &self,
        family: &Family,
        choice: &[usize],
        us: f64,
        dims: &SizeEnv,
    ) -> Option<Candidate> {
        let of = |(place, i): (&usize, &usize)| Some(self.places[*place].get_index(*i)?.1);
        let chosen: Vec<&Stage> =
            family.places.iter().zip(choice).map(of).collect::<Option<_>>()?;
        let parts: Vec<&Term> = chosen.iter().map(|s| &s.part).collect();
        let compact = stages::framed(&family.frame, &parts).ok()?;
        let apart = stages::apart(&compact).ok()?;
        // Stages from different families may have the same tile of a constant.
        if stages::share_symbols(&apart.parts) {
            return None;
        }
        let term = written_out(&apart.compact).ok()?;
        let mut env = stages::with_aliases(&apart.compact, dims);
        for (k, stage) in chosen.iter().enumerate() {
            env.extend(stage.values.iter().map(|(s, v)| (stages::numbered(s, k), *v)));
        }
        let skeleton = search::skeleton_text(&term);
        let (form, stages) = (family.form, family.values.clone());
        Some(Candidate { term, compact, env, skeleton, form, stages, estimate_us: us })
    }
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

    /// Returns the candidate that takes the least time.
    fn fastest(&self) -> Option<(&Vec<usize>, &Times)> {
        self.timed().min_by(|a, b| a.1.all.total_cmp(&b.1.all))
    }

    /// Returns the share of each stage in the times. If it is not known as the time of a kernel, it is the one with which the sums
    /// come closest to the known times, found place by place. A stage without a known time has an infinite share.
    fn shares(&self, places: &IndexMap<String, Place>) -> Vec<Vec<f64>> {
        let timed: Vec<(&Vec<usize>, f64)> = self.timed().map(|(c, t)| (c, t.all)).collect();
        let least = timed.iter().map(|(_, us)| *us).fold(f64::INFINITY, f64::min);
        let each = least / self.places.len() as f64;
        // Otherwise the frame has kernels, too, whose time is in the fitted shares alone.
        let exact = self.timed().any(|(_, times)| times.stages.is_some());
        let us = |s: &Stage| s.us.filter(|_| exact);
        let known: Vec<Vec<Option<f64>>> =
            self.places.iter().map(|p| places[*p].values().map(us).collect()).collect();
        let of = |place: &Vec<Option<f64>>| place.iter().map(|us| us.unwrap_or(each)).collect();
        let mut shares: Vec<Vec<f64>> = known.iter().map(of).collect();
        let steps = if known.iter().flatten().all(Option::is_some) { 0 } else { STEPS };
        for _ in 0..steps {
            for place in 0..known.len() {
                let mut sums = vec![(0.0, 0.0); known[place].len()];
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

    /// Adds stages with values that none has so far, and returns the combinations of each with the stages of the best candidate.
    fn other_values(
        &self,
        places: &mut IndexMap<String, Place>,
        values: &StageValues,
    ) -> Vec<Vec<usize>> {
        let Some((best, times)) = self.fastest() else { return vec![] };
        let shares = self.shares(places);
        let mut out = vec![];
        for (k, place) in self.places.iter().enumerate() {
            if shares[k][best[k]] < MUCH * times.all {
                continue;
            }
            let place = &mut places[*place];
            let mut order: Vec<usize> =
                (0..shares[k].len()).filter(|i| shares[k][*i].is_finite()).collect();
            order.sort_by(|a, b| shares[k][*a].total_cmp(&shares[k][*b]));
            let forms: IndexSet<Term> = order.iter().map(|i| place[*i].part.clone()).collect();
            for part in forms.into_iter().take(FORMS) {
                let all = values.get(&part).into_iter().flatten().map(|env| Stage {
                    values: stages::values_at(&part, 0, env),
                    part: part.clone(),
                    us: None,
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
    fn family(shares: [&[f64]; 2], known: &[[usize; 2]]) -> (Family, IndexMap<String, Place>) {
        let stage = |k: usize| {
            let stage = Stage { part: Term::id(&Ty::Unit), values: SizeEnv::default(), us: None };
            (k.to_string(), stage)
        };
        let time = |c: &[usize; 2]| {
            let all = shares[0][c[0]] + shares[1][c[1]];
            (c.to_vec(), Some(Times { all, stages: None }))
        };
        let family = Family {
            form: 0,
            values: [].into(),
            frame: Term::id(&Ty::Unit),
            order: None,
            places: vec![0, 1],
            known: known.iter().map(time).collect(),
        };
        let place = |(k, s): (usize, &&[f64])| (k.to_string(), (0..s.len()).map(stage).collect());
        (family, shares.iter().enumerate().map(place).collect())
    }

    #[test]
    fn the_best_stages_meet() {
        // The best of each place, 1 and 2, are known only beside slow ones.
        let shares = [&[900.0, 10.0, 300.0][..], &[500.0, 700.0, 20.0][..]];
        let (mut family, places) = family(shares, &[[0, 0], [0, 2], [1, 0], [2, 1], [2, 2]]);
        let best = family.best(&family.shares(&places));
        assert_eq!(best[0].1, [1, 2]);
        assert!((best[0].0 - 30.0).abs() < 5.0, "{}", best[0].0);
        // A combination without kernels is not proposed again.
        family.known.push((vec![1, 2], None));
        assert!(family.best(&family.shares(&places)).iter().all(|(_, c)| c != &[1, 2]));
    }

    /// A candidate of two kernels that map these functions, with this length of all tiles.
    fn candidate(of: [&str; 2], tile: u64) -> Candidate {
        let map = |f: &str| format!("join . mapGlb 0 (mapSeq {f}) . split n.t0");
        candidate_at(&format!("{} . {} . xs", map(of[0]), map(of[1])), of, tile)
    }

    /// A candidate with two stages that have these places.
    fn candidate_at(text: &str, of: [&str; 2], tile: u64) -> Candidate {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
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
        let (family, places) = (&joiner.families[0], &joiner.places);
        assert_eq!(family.shares(places), [[20.0, 10.0], [7.0, 9.0]]);
        assert_eq!(family.best(&family.shares(places)), [(17.0, vec![1, 0]), (29.0, vec![0, 1])]);
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

    const GROUPS: &str = "join . mapWrg 0 (mapLcl 0 abs) . split n.t0";
    const ITEMS: &str = "join . mapGlb 0 (mapSeq sqrt) . split n.t0";

    /// The rest of the program may be cut in another way.
    #[test]
    fn a_stage_serves_every_family_with_its_place() {
        let mut joiner = Joiner::default();
        let of = ["abs", "sqrt"];
        joiner.add(&candidate(of, 4), Some(&[7.0, 20.0]));
        let forked = format!("fork ({GROUPS}) id . {ITEMS} . xs");
        joiner.add(&candidate_at(&forked, of, 8), Some(&[9.0, 10.0]));
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

    /// A kernel without tiles belongs to the frame.
    #[test]
    fn the_time_of_the_frame_counts() {
        let mut joiner = Joiner::default();
        let of = ["abs", "sqrt"];
        joiner.add(&candidate(of, 4), Some(&[7.0, 20.0]));
        let framed = format!("mapGlb 0 abs . fork ({GROUPS}) id . {ITEMS} . xs");
        let framed = framed.replace("abs . fork", r"(\(a, b) -> a) . zip . fork");
        joiner.add(&candidate_at(&framed, of, 8), Some(&[9.0, 10.0, 50.0]));
        assert!(joiner.joined(&dims()).iter().all(|c| c.estimate_us >= 17.0));
    }

    #[test]
    fn stages_beside_one_without_a_kernel_are_tried_once() {
        let mut joiner = Joiner::default();
        let of = ["abs", "sqrt"];
        joiner.add(&candidate(of, 4), Some(&[7.0, 20.0]));
        joiner.add(&candidate_at(&format!("{GROUPS} . {ITEMS} . xs"), of, 8), None);
        let tried = joiner.untimed(&dims());
        let texts: Vec<_> = tried.iter().map(|c| c.compact.to_string()).collect();
        assert_eq!(texts, [format!("{GROUPS} . {ITEMS} . xs")]);
        assert!(joiner.untimed(&dims()).is_empty());
    }

    #[test]
    fn slow_stages_get_other_values() {
        let mut joiner = Joiner::default();
        let of = ["abs", "sqrt"];
        joiner.add(&candidate(of, 4), Some(&[20.0]));
        joiner.add(&candidate(of, 8), Some(&[10.0]));
        let (_, parts) = stages::frame(&candidate(of, 8).compact).expect("well-typed");
        let with = |tile| SizeEnv::from_iter([(Sym::Tile(Size::dim("n")), tile)]);
        let values: StageValues =
            parts.into_iter().map(|part| (part, [8, 16, 32].map(with).to_vec())).collect();
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
