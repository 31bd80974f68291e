//! Random values for a rule's sizes: small ones, among them primes, equal ones, 0 and 1.
//!
//! Every size of the left side is a whole number, conditions hold, and tunables only have values that they
//! may have. Sizes of the right side are whole as far as tunables decide them; any other size needs a
//! `divides` condition to be whole.

use crate::calculus::sample::Rng;
use crate::calculus::size::{Size, SizeEnv, SizeError, Sym};
use crate::calculus::term::Term;
use crate::calculus::ty::Ty;
use crate::rules::{Condition, LetSize, Rule, SizeMaker};
use indexmap::IndexMap;
use num_integer::gcd;
use rand::RngExt;
use std::sync::Arc;

/// The lengths that are drawn from.
const LENGTHS: [u64; 19] = [0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 23, 24];

/// The longest length that `repair` makes when the sides divide a length.
const LONGEST: u64 = 4096;

/// The sizes of a rule and their constraints.
pub(super) struct Sizes {
    /// Variables that the left side binds, with their least and greatest values.
    free: IndexMap<Arc<str>, (u64, u64)>,
    lets: Vec<LetSize>,
    /// Sizes that must be whole because of the left side and the conditions.
    given: Vec<Size>,
    /// Sizes of the right side that tunables make whole.
    made: Vec<Size>,
    /// The other sizes of the right side.
    other: Vec<Size>,
}

impl Sizes {
    pub(super) fn of(rule: &Rule) -> Sizes {
        let (left, right) = (all_sizes(&rule.lhs), all_sizes(&rule.rhs));
        let mut free: IndexMap<Arc<str>, (u64, u64)> = IndexMap::new();
        for s in &left {
            s.visit(&mut |sym| {
                if let Sym::Meta(m) = sym {
                    free.insert(m.clone(), (0, u64::MAX));
                }
            });
        }
        for s in left.iter().chain(&right) {
            for (sym, e) in s.factors() {
                if let Sym::Meta(m) = sym
                    && let Some((least, _)) = free.get_mut(m)
                    && e < 0
                {
                    // A length that divides another is the length of a chunk.
                    *least = 1;
                }
            }
        }
        let mut given = left;
        for c in &rule.when {
            let (n, least, most) = match c {
                Condition::Divides(k, n) => {
                    given.push(n.div(k));
                    continue;
                }
                Condition::Tile(n) | Condition::Rounds(_, n) => (n, 1, u64::MAX),
                Condition::Small(n) => (n, 0, 16),
                Condition::UpTo(n, k) => (n, 0, *k),
                // `from` says when the rule pays, not when it holds: a smaller bound keeps arrays short.
                Condition::From(n, k) => (n, (*k).min(LONGEST / 64), u64::MAX),
                _ => continue,
            };
            if let Some(Sym::Meta(m)) = n.as_sym()
                && let Some(bounds) = free.get_mut(m)
            {
                *bounds = (bounds.0.max(least), bounds.1.min(most));
            }
        }
        let is_let = |s: &Sym| rule.lets.iter().any(|l| *s == Sym::Meta(l.name.as_str().into()));
        let (made, other) = right.into_iter().partition(|s| s.factors().any(|(s, _)| is_let(s)));
        Sizes { free, lets: rule.lets.clone(), given, made, other }
    }

    /// Returns a size of the right side that is not whole, as text.
    pub(super) fn uneven(&self, env: &SizeEnv) -> Option<String> {
        let uneven = |s: &&Size| matches!(s.eval(env), Err(SizeError::Inexact(_)));
        let size = self.other.iter().chain(&self.made).find(uneven)?;
        Some(size.to_string().replace('?', ""))
    }

    /// Returns values for every variable, up to `most` if the sides allow that; `None` when none were found.
    pub(super) fn draw(&self, rng: &mut Rng, most: u64) -> Option<SizeEnv> {
        let mut env = SizeEnv::default();
        let equal = rng.random_range(0..5) == 0;
        let all = length(rng, 1, most);
        for (name, (least, limit)) in &self.free {
            let n = if equal {
                all.clamp(*least, *limit)
            } else {
                length(rng, *least, most.min(*limit))
            };
            env.insert(Sym::Meta(name.clone()), n);
        }
        // Take 0 and 1 more often than chance does.
        if !self.free.is_empty() && rng.random_range(0..8) == 0 {
            let at = rng.random_range(0..self.free.len());
            if let Some((name, (least, limit))) = self.free.get_index(at) {
                let n = rng.random_range(0..2u64).clamp(*least, *limit);
                env.insert(Sym::Meta(name.clone()), n);
            }
        }
        self.repair(&mut env, &[])?;
        let tiled = (0..12).find_map(|_| self.tiled(rng, &env));
        tiled.or_else(|| (0..4).find_map(|_| self.fitted(rng, &env)))
    }

    /// Chooses tunables first, then lengths that they divide as the right side requires. Only for rules that
    /// round nothing up.
    fn fitted(&self, rng: &mut Rng, env: &SizeEnv) -> Option<SizeEnv> {
        if self.lets.iter().any(|l| l.maker == SizeMaker::Round) {
            return None;
        }
        let mut with = env.clone();
        self.make(rng, &mut with)?;
        self.repair(&mut with, &self.made)?;
        self.made.iter().all(|s| s.eval(&with).is_ok()).then_some(with)
    }

    /// Returns the same lengths with other values for tunables; `None` when these do not fit.
    pub(super) fn tiled(&self, rng: &mut Rng, env: &SizeEnv) -> Option<SizeEnv> {
        let mut with = env.clone();
        self.make(rng, &mut with)?;
        self.made.iter().all(|s| s.eval(&with).is_ok()).then_some(with)
    }

    /// Lengthens arrays until all sizes in `given` and `more` are whole.
    fn repair(&self, env: &mut SizeEnv, more: &[Size]) -> Option<()> {
        let all = || self.given.iter().chain(more);
        for _ in 0..6 {
            let Some(s) = all().find(|s| matches!(s.eval(env), Err(SizeError::Inexact(_)))) else {
                return Some(());
            };
            let (mut num, mut den) = s.coefficient();
            for (sym, e) in s.factors() {
                let v = *env.get(sym)?;
                let side = if e > 0 { &mut num } else { &mut den };
                *side = side.checked_mul(v.checked_pow(e.unsigned_abs())?)?;
            }
            let lacking = den / gcd(num, den).max(1);
            let longer = s.factors().find_map(|(sym, e)| match sym {
                Sym::Meta(m) if e == 1 && self.free.contains_key(m) => Some((sym.clone(), m)),
                _ => None,
            });
            let (sym, name) = longer?;
            let n = env.get(&sym)?.checked_mul(lacking)?;
            if n > LONGEST.min(self.free.get(name)?.1) {
                return None;
            }
            env.insert(sym, n);
        }
        None
    }

    /// Chooses tiles and widths, and rounds lengths up to multiples of them.
    fn make(&self, rng: &mut Rng, env: &mut SizeEnv) -> Option<()> {
        let mut steps: Vec<(Size, u64)> = vec![];
        for l in &self.lets {
            let n = l.of.eval(env).ok()?;
            let v = match l.maker {
                SizeMaker::Tile => {
                    let dividing = |d: &u64| n.is_multiple_of(*d) && *d < n;
                    let divisors: Vec<u64> = (2..=n.min(64)).filter(dividing).collect();
                    match rng.random_range(0..8) {
                        0 => 1,
                        1 => n.max(1),
                        2..5 if !divisors.is_empty() => {
                            divisors[rng.random_range(0..divisors.len())]
                        }
                        _ => rng.random_range(1..n.min(24) + 3),
                    }
                }
                SizeMaker::Width => {
                    // The width of a tile divides the tile; another length is rounded up to a multiple of its
                    // width.
                    let of_tile =
                        |m: &LetSize| l.of.as_sym() == Some(&Sym::Meta(m.name.as_str().into()));
                    let any = !self.lets.iter().any(of_tile);
                    let fits: Vec<u64> = [2, 2, 4, 8, 16]
                        .into_iter()
                        .filter(|w| any || n.is_multiple_of(*w))
                        .collect();
                    if fits.is_empty() { 1 } else { fits[rng.random_range(0..fits.len())] }
                }
                SizeMaker::Round => continue,
            };
            steps.push((l.of.clone(), v));
            env.insert(Sym::Meta(l.name.as_str().into()), v);
        }
        // Other rules may tile the same length too.
        let further = [1, 1, 1, 2, 3][rng.random_range(0..5)];
        for l in self.lets.iter().filter(|l| l.maker == SizeMaker::Round) {
            let n = l.of.eval(env).ok()?;
            let own = steps.iter().filter(|(of, _)| *of == l.of);
            let step = own.fold(further, |m, (_, v)| m / gcd(m, *v) * v);
            env.insert(Sym::Meta(l.name.as_str().into()), n.div_ceil(step) * step);
        }
        Some(())
    }
}

fn length(rng: &mut Rng, least: u64, most: u64) -> u64 {
    let fits: Vec<u64> = LENGTHS.into_iter().filter(|n| (least..=most).contains(n)).collect();
    if fits.is_empty() { least } else { fits[rng.random_range(0..fits.len())] }
}

/// Returns every size in a term, and in the definitions of its short forms.
fn all_sizes(t: &Term) -> Vec<Size> {
    let mut out = sizes_in(t);
    if let Ok(long) = t.unpacked() {
        out.extend(sizes_in(&long));
        out.sort();
        out.dedup();
    }
    out
}

/// Returns every size in a term, including those of its types.
fn sizes_in(t: &Term) -> Vec<Size> {
    fn ty(t: &Ty, out: &mut Vec<Size>) {
        match t {
            Ty::Unit | Ty::Scalar(_) | Ty::Meta(_) => {}
            Ty::Vector(n, t) | Ty::Array(n, t) => {
                out.push(n.clone());
                ty(t, out);
            }
            Ty::Pair(a, b) => {
                ty(a, out);
                ty(b, out);
            }
        }
    }
    let mut out = vec![];
    t.visit(&mut |t| {
        out.extend(t.sizes().iter().cloned());
        t.tys().iter().for_each(|t| ty(t, &mut out));
        ty(&t.ty().dom, &mut out);
        ty(&t.ty().cod, &mut out);
    });
    out.sort();
    out.dedup();
    out
}
