//! Assignments from tunables that are already known, for terms that come from elsewhere than a search. The
//! values of all other symbols follow from them.

use super::{Role, Uses, is_free};
use crate::calculus::size::{SizeEnv, Sym};
use crate::calculus::term::Term;
use crate::extract::stages::with_aliases;
use indexmap::IndexMap;
use std::collections::BTreeMap;

/// A chunk of at most this many times the size inside it is a short run of a work-item, whatever the
/// dimension; a longer chunk is a share of the whole.
const RUN: u64 = 64;

/// Returns the value of every symbol of a term, from the program's dimensions and the term's tunables by
/// name; `None` when a tunable is missing or the sizes do not divide.
pub fn assigned(term: &Term, dims: &SizeEnv, tunables: &BTreeMap<String, u64>) -> Option<SizeEnv> {
    let uses = Uses::of(term, term, false);
    let mut env = with_aliases(term, dims);
    for s in &uses.symbols {
        env.insert(s.clone(), *tunables.get(&s.to_string()).filter(|v| **v > 0)?);
    }
    let of_loops = (0..).map(Sym::of_loop).map(|s| (tunables.get(&s.to_string()).copied(), s));
    env.extend(of_loops.take(MOST_LOOPS).filter_map(|(value, s)| Some((s, value?))));
    uses.finished(env)
}

/// Number of loops of the host that teams may run.
const MOST_LOOPS: usize = 16;

/// As [`assigned`], for other dimensions than those that the tunables in `from` were chosen for. Tiles,
/// widths and short runs stay as they are; a tile that cut its dimension into a number of chunks cuts the new
/// one into as many. Returns `None` when the sizes do not divide, or most of a tile would be past the end.
pub fn refitted(term: &Term, from: &SizeEnv, dims: &SizeEnv) -> Option<SizeEnv> {
    let uses = Uses::of(term, term, false);
    let mut env = with_aliases(term, dims);
    let mut picked = IndexMap::new();
    for s in &uses.symbols {
        let value = *from.get(s)?;
        picked.insert(s.clone(), value);
        if matches!(s, Sym::Width(_)) {
            env.insert(s.clone(), value);
        }
    }
    for s in &uses.symbols {
        let Sym::Tile(of) = s else { continue };
        uses.round(of, &mut env)?;
        let (before, now, value) = (of.eval(from).ok()?, of.eval(&env).ok()?, picked[s]);
        let inside = uses.inside(s, &picked);
        let shared = matches!(uses.roles.get(s), Some(Role::Chunk(_)) | None)
            && value > RUN.saturating_mul(inside);
        let value = match shared {
            false => value,
            true => {
                let count = before.div_ceil(value).max(1);
                if is_free(of) {
                    now.div_ceil(count).max(1).next_multiple_of(inside)
                } else {
                    (now % count == 0).then_some(now / count)?
                }
            }
        };
        let fits = match is_free(of) {
            true => value <= 2 * now.max(1).next_multiple_of(inside),
            false => value > 0 && now % value == 0,
        };
        env.insert(s.clone(), fits.then_some(value)?);
    }
    env.extend(from.iter().filter(|(s, _)| s.is_of_loop()).map(|(s, n)| (s.clone(), *n)));
    uses.finished(env)
}

impl Uses {
    /// Adds the rounded sizes; `None` when a size is no whole number.
    fn finished(&self, mut env: SizeEnv) -> Option<SizeEnv> {
        for of in self.rounded() {
            // What is rounded may itself have rounded sizes in it.
            self.round(&of, &mut env)?;
            self.round_final(&of, &mut env)?;
        }
        self.sizes.iter().all(|s| s.eval(&env).is_ok()).then_some(env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::Size;
    use crate::calculus::text::{Context, read_term};
    use crate::calculus::ty::Ty;
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    /// A sum in two steps: chunks of `n.t0`, folded by one work-item each.
    const SUM: &str = "mapGlb 0 (reduceSeq (+) 0.0) . split n.t0 . padLast n^ . xs";

    fn term(text: &str) -> Term {
        let xs = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let context = Context { inputs: [("xs".to_owned(), xs)].into(), variables: None };
        read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term")
    }

    fn dims(n: u64) -> SizeEnv {
        SizeEnv::from_iter([(Sym::Dim("n".into()), n)])
    }

    fn values(env: &SizeEnv) -> BTreeMap<String, u64> {
        env.iter().map(|(s, v)| (s.to_string(), *v)).collect()
    }

    #[test]
    fn what_is_rounded_up_follows_from_tiles() {
        let of = |t: u64| assigned(&term(SUM), &dims(1000), &[("n.t0".to_owned(), t)].into());
        let env = values(&of(256).expect("every size has a value"));
        assert_eq!((env["n.t0"], env["n^"]), (256, 1024));
        assert_eq!(of(0), None);
        assert_eq!(assigned(&term(SUM), &dims(1000), &BTreeMap::new()), None);
    }

    #[test]
    fn work_groups_of_loops_of_the_host_stay() {
        let tunables = [("n.t0".to_owned(), 256), (Sym::of_loop(1).to_string(), 132)].into();
        let env = assigned(&term(SUM), &dims(1000), &tunables).expect("an assignment");
        assert_eq!(env.get(&Sym::of_loop(1)), Some(&132));
        assert_eq!(env.get(&Sym::of_loop(0)), None);
        let other = refitted(&term(SUM), &env, &dims(2000)).expect("an assignment");
        assert_eq!(other.get(&Sym::of_loop(1)), Some(&132));
    }

    #[test]
    fn sizes_are_rounded_up_in_sizes_that_are_rounded_up() {
        let sum = "mapGlb 0 (reduceSeq (vectorize n.v (+)) (splat n.v . 0.0)) . split (n^/n.v).t0
            . padTo (n^/n.v)^ (splat n.v . 0.0) . asVector n.v . padTo n^ 0.0 . xs";
        let tunables = [("n.v".to_owned(), 4), ("(n^/n.v).t0".to_owned(), 8)].into();
        let env = values(&assigned(&term(sum), &dims(1001), &tunables).expect("an assignment"));
        assert_eq!((env["n^"], env["(n^/n.v)^"]), (1004, 256));
    }

    #[test]
    fn shares_stay_shares_and_runs_stay_runs() {
        let at = |n: u64, t: u64, now: u64| {
            let from = assigned(&term(SUM), &dims(n), &[("n.t0".to_owned(), t)].into());
            let env = refitted(&term(SUM), &from.expect("an assignment"), &dims(now))?;
            Some((values(&env)["n.t0"], values(&env)["n^"]))
        };
        // 8000 elements in eight chunks of 1000; 80001 elements again in eight chunks.
        assert_eq!(at(8_000, 1_000, 80_001), Some((10_001, 80_008)));
        assert_eq!(at(8_000, 16, 80_001), Some((16, 80_016)));
        // Most of the tile would be past the end.
        assert_eq!(at(8_000, 16, 3), None);
    }
}
