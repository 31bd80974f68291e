//! Systems of equations between sizes: products of powers of symbols that must be equal, in positive whole
//! numbers.
//!
//! A system is kept solved: each decided symbol stands for a monomial over the symbols that are still free. A
//! contradiction therefore shows as soon as it is added, and equal systems compare equal.

use crate::calculus::size::{Size, SizeEnv, SizeError, Sym};
use indexmap::IndexSet;
use num_integer::gcd;

/// Most choices for free symbols that are tried before a system counts as unsolvable.
const CHOICES: usize = 1 << 16;

/// Numbers the symbols in the order in which they are met, and knows the values given beforehand.
pub(super) struct Symbols<'a> {
    known: &'a SizeEnv,
    met: IndexSet<Sym>,
}

/// A rational number times powers of symbols; the numerator is 0 for the size 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Monomial {
    num: u128,
    den: u128,
    /// Symbols by number, with nonzero exponents.
    factors: Vec<(usize, i32)>,
}

/// Equations, solved as far as possible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Equations {
    /// Decided symbols by number, each with its value in terms of free symbols.
    solved: Vec<(usize, Monomial)>,
    /// Monomials that must equal 1 and in which no symbol has the exponent 1 or -1.
    rest: Vec<Monomial>,
}

impl Monomial {
    fn one() -> Monomial {
        Monomial { num: 1, den: 1, factors: vec![] }
    }

    /// Returns `self * other^power`; `None` when a coefficient overflows.
    fn times(&self, other: &Monomial, power: i32) -> Option<Monomial> {
        let (mut num, mut den) = (self.num, self.den);
        let (by, under) = if power > 0 { (other.num, other.den) } else { (other.den, other.num) };
        for _ in 0..power.unsigned_abs() {
            // Cancel crosswise first, so that the products stay small.
            let (g, h) = (gcd(num, under).max(1), gcd(by, den).max(1));
            num = (num / g).checked_mul(by / h)?;
            den = (den / h).checked_mul(under / g)?;
        }
        let mut factors = self.factors.clone();
        for (s, e) in &other.factors {
            match factors.binary_search_by_key(s, |(s, _)| *s) {
                Ok(at) => {
                    factors[at].1 += e * power;
                    if factors[at].1 == 0 {
                        factors.remove(at);
                    }
                }
                Err(at) => factors.insert(at, (*s, e * power)),
            }
        }
        Some(Monomial { num, den, factors })
    }

    /// Returns the monomial with one symbol replaced.
    fn with(&self, symbol: usize, value: &Monomial) -> Option<Monomial> {
        let Some(at) = self.factors.iter().position(|(s, _)| *s == symbol) else {
            return Some(self.clone());
        };
        let mut out = self.clone();
        let (_, e) = out.factors.remove(at);
        out.times(value, e)
    }

    fn number(&self) -> Option<u64> {
        (self.factors.is_empty() && self.den == 1 && self.num > 0)
            .then(|| u64::try_from(self.num).ok())
            .flatten()
    }
}

impl<'a> Symbols<'a> {
    pub(super) fn new(known: &'a SizeEnv) -> Self {
        Symbols { known, met: IndexSet::new() }
    }

    fn monomial(&mut self, s: &Size) -> Option<Monomial> {
        let (num, den) = s.coefficient();
        let mut out = Monomial { num: num.into(), den: den.into(), factors: vec![] };
        for (sym, e) in s.factors() {
            let factor = match self.known.get(sym) {
                Some(v) => Monomial { num: u128::from(*v), ..Monomial::one() },
                None => {
                    let (number, _) = self.met.insert_full(sym.clone());
                    Monomial { factors: vec![(number, 1)], ..Monomial::one() }
                }
            };
            if factor.num == 0 {
                return (e > 0).then_some(Monomial { num: 0, ..Monomial::one() });
            }
            out = out.times(&factor, e)?;
        }
        Some(out)
    }

    /// Adds `a = b`; returns false when the system then has no solution.
    pub(super) fn equate(&mut self, a: &Size, b: &Size, equations: &mut Equations) -> bool {
        if a == b {
            return true;
        }
        let (Some(a), Some(b)) = (self.monomial(a), self.monomial(b)) else { return false };
        if a.num == 0 || b.num == 0 {
            return a.num == b.num;
        }
        a.times(&b, -1).is_some_and(|ratio| self.add(equations, ratio))
    }

    /// Adds the equations of another system; returns false when the two contradict each other.
    pub(super) fn join(&self, into: &mut Equations, other: &Equations) -> bool {
        other.solved.iter().all(|(s, value)| {
            let symbol = Monomial { factors: vec![(*s, 1)], ..Monomial::one() };
            symbol.times(value, -1).is_some_and(|ratio| self.add(into, ratio))
        }) && other.rest.iter().all(|m| self.add(into, m.clone()))
    }

    /// Adds `m = 1`; returns false when the system then has no solution.
    fn add(&self, into: &mut Equations, m: Monomial) -> bool {
        let mut m = m;
        for (s, value) in &into.solved {
            match m.with(*s, value) {
                Some(next) => m = next,
                None => return false,
            }
        }
        let pivot = match m.factors.as_slice() {
            [] => return m.num == m.den,
            [(s, e)] => {
                // s^e = den / num
                let (num, den) = if *e > 0 { (m.den, m.num) } else { (m.num, m.den) };
                match root(num, e.unsigned_abs()) {
                    Some(v) if den == 1 => (*s, Monomial { num: v, ..Monomial::one() }),
                    _ => return false,
                }
            }
            many => {
                // A rounded size is better left free: `choices` tries its least values.
                let round = |s: usize| matches!(self.met.get_index(s), Some(Sym::Round(_)));
                let unit = many.iter().filter(|(_, e)| e.abs() == 1);
                let Some((s, e)) = unit.max_by_key(|(s, _)| (!round(*s), *s)).copied() else {
                    if !into.rest.contains(&m) {
                        into.rest.push(m);
                    }
                    return true;
                };
                let mut others = m.clone();
                others.factors.retain(|(t, _)| *t != s);
                match Monomial::one().times(&others, -e) {
                    Some(value) => (s, value),
                    None => return false,
                }
            }
        };
        self.decide(into, pivot.0, pivot.1)
    }

    fn decide(&self, into: &mut Equations, symbol: usize, value: Monomial) -> bool {
        for (_, m) in &mut into.solved {
            match m.with(symbol, &value) {
                Some(next) if !next.factors.is_empty() || next.den == 1 => *m = next,
                _ => return false,
            }
        }
        let at = into.solved.partition_point(|(s, _)| *s < symbol);
        into.solved.insert(at, (symbol, value));
        std::mem::take(&mut into.rest).into_iter().all(|m| self.add(into, m))
    }

    /// Returns values for every symbol that the equations mention: positive and whole, with each rounded size
    /// at least as large as the size that it rounds up. Those of `whole` that get a value must be whole too.
    pub(super) fn solve(&self, equations: &Equations, whole: &[Size]) -> Option<SizeEnv> {
        let mentioned = equations.solved.iter().map(|(_, m)| m).chain(&equations.rest);
        let free: IndexSet<usize> =
            mentioned.clone().flat_map(|m| m.factors.iter().map(|(s, _)| *s)).collect();
        let multiple = mentioned.fold(1u128, |all, m| {
            [m.num, m.den].iter().fold(all, |all, x| all / gcd(all, *x) * (*x).max(1))
        });
        let choices: Vec<Vec<u64>> = free.iter().map(|s| self.choices(*s, multiple)).collect();
        let total = choices.iter().try_fold(1usize, |n, c| n.checked_mul(c.len()))?;
        (0..total.min(CHOICES)).find_map(|pick| {
            let mut index = pick;
            let chosen: Vec<(usize, u64)> = free
                .iter()
                .zip(&choices)
                .map(|(s, c)| {
                    let v = c[index % c.len()];
                    index /= c.len();
                    (*s, v)
                })
                .collect();
            self.check(equations, &chosen, whole)
        })
    }

    /// Returns the values to try for a free symbol: the divisors of all coefficients and, for a rounded size,
    /// its least possible values.
    fn choices(&self, symbol: usize, multiple: u128) -> Vec<u64> {
        let multiple = u64::try_from(multiple).unwrap_or(1);
        let small = (1..=multiple.isqrt().min(1 << 16)).filter(|d| multiple.is_multiple_of(*d));
        let mut out: Vec<u64> = small.flat_map(|d| [d, multiple / d]).collect();
        if let Some(Sym::Round(of)) = self.met.get_index(symbol)
            && let Ok(n) = of.eval(self.known)
        {
            out.extend([n.max(1), n.max(1).next_multiple_of(multiple)]);
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    fn check(
        &self,
        equations: &Equations,
        chosen: &[(usize, u64)],
        whole: &[Size],
    ) -> Option<SizeEnv> {
        let value = |m: &Monomial| {
            chosen.iter().try_fold(m.clone(), |m, (s, v)| {
                m.with(*s, &Monomial { num: u128::from(*v), ..Monomial::one() })
            })
        };
        let mut out = SizeEnv::default();
        for (s, m) in &equations.solved {
            out.insert(self.met[*s].clone(), value(m)?.number()?);
        }
        for (s, v) in chosen {
            out.insert(self.met[*s].clone(), *v);
        }
        if equations.rest.iter().any(|m| value(m).is_none_or(|m| m.number() != Some(1))) {
            return None;
        }
        let mut all = self.known.clone();
        all.extend(out.iter().map(|(s, v)| (s.clone(), *v)));
        // A size without a value is no constraint.
        let value = |s: &Size| match s.eval(&all) {
            Ok(v) => Some(v),
            Err(SizeError::Unbound(_)) => Some(0),
            Err(SizeError::Inexact(_) | SizeError::Overflow(_)) => None,
        };
        let enough = |(s, v): (&Sym, &u64)| match s {
            Sym::Round(of) => value(of).is_some_and(|n| *v >= n),
            _ => true,
        };
        (out.iter().all(enough) && whole.iter().all(|s| value(s).is_some())).then_some(out)
    }

    /// Returns the system as text, such as `n.t0 = 128, n^ = 16384`.
    pub(super) fn text(&self, equations: &Equations) -> String {
        let power = |(s, e): &(usize, i32)| {
            let symbol = self.met[*s].to_string();
            if e.abs() == 1 { symbol } else { format!("{symbol}**{}", e.abs()) }
        };
        let monomial = |m: &Monomial| {
            let mut over: Vec<String> = m.factors.iter().filter(|f| f.1 > 0).map(power).collect();
            if m.num != 1 || over.is_empty() {
                over.insert(0, m.num.to_string());
            }
            let mut under: Vec<String> = m.factors.iter().filter(|f| f.1 < 0).map(power).collect();
            if m.den != 1 {
                under.insert(0, m.den.to_string());
            }
            under.into_iter().fold(over.join("*"), |text, u| format!("{text}/{u}"))
        };
        let solved =
            equations.solved.iter().map(|(s, m)| format!("{} = {}", self.met[*s], monomial(m)));
        let rest = equations.rest.iter().map(|m| format!("{} = 1", monomial(m)));
        solved.chain(rest).collect::<Vec<_>>().join(", ")
    }

    /// Returns a sentence that names a symbol with different values in two systems.
    pub(super) fn conflict(&self, a: &Equations, b: &Equations) -> String {
        for (s, v) in &a.solved {
            for (t, w) in &b.solved {
                if let (true, Some(v), Some(w)) = (s == t, v.number(), w.number())
                    && v != w
                {
                    return format!("`{}` would have to be both {v} and {w}", self.met[*s]);
                }
            }
        }
        let (a, b) = (self.text(a), self.text(b));
        format!("these have no common solution: {a}; and {b}")
    }
}

/// Returns the `k`-th root if it is whole.
fn root(n: u128, k: u32) -> Option<u128> {
    if k == 1 {
        return Some(n);
    }
    // Sizes have 64 bits: the nearest float is off by at most one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a root fits")]
    let near = (n as f64).powf(1.0 / f64::from(k)).round() as u128;
    (near.saturating_sub(1)..=near + 1).find(|r| r.checked_pow(k) == Some(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Size {
        let source = crate::diag::Source::new("size", text);
        crate::calculus::text::parse_size(&source, 0..text.len()).expect("a size")
    }

    /// The solution of equations, as text; `-` when there is none.
    fn solved(known: &[(&str, u64)], equations: &[(&str, &str)]) -> String {
        let known = known.iter().map(|(n, v)| (Sym::Dim((*n).into()), *v)).collect();
        let mut symbols = Symbols::new(&known);
        let mut all = Equations::default();
        for (a, b) in equations {
            if !symbols.equate(&size(a), &size(b), &mut all) {
                return "-".to_owned();
            }
        }
        let Some(env) = symbols.solve(&all, &[]) else { return "none".to_owned() };
        let mut out: Vec<String> = env.iter().map(|(s, v)| format!("{s}={v}")).collect();
        out.sort();
        out.join(" ")
    }

    #[test]
    fn tiles_follow_from_numbers() {
        let n = [("n", 16384)];
        assert_eq!(solved(&n, &[("n.t0", "128"), ("n^/n.t0", "128")]), "n.t0=128 n^=16384");
        assert_eq!(solved(&n, &[("n.t0", "128"), ("n.t0", "64")]), "-");
        assert_eq!(solved(&n, &[("n.t0/n.t0.t1", "3"), ("n.t0", "128")]), "-");
        assert_eq!(solved(&n, &[("n", "16384"), ("n.t0", "n.t0")]), "");
        assert_eq!(solved(&n, &[("n", "16383")]), "-");
    }

    #[test]
    fn rounded_sizes_are_no_less_than_what_they_round() {
        assert_eq!(solved(&[("n", 1000)], &[("n^/n.t0", "8")]), "n.t0=125 n^=1000");
        assert_eq!(solved(&[("n", 1001)], &[("n^/n.t0", "8")]), "n.t0=126 n^=1008");
        assert_eq!(solved(&[("n", 1000)], &[("n^", "999")]), "none");
    }

    #[test]
    fn products_and_powers() {
        assert_eq!(solved(&[], &[("a*b", "12"), ("a/b", "3")]), "a=6 b=2");
        assert_eq!(solved(&[], &[("a*b", "12"), ("a*b", "16")]), "-");
        assert_eq!(solved(&[], &[("a*b", "6"), ("a/b", "5")]), "-");
        assert_eq!(solved(&[], &[("a*a", "2*b*b"), ("b", "1")]), "-");
        assert_eq!(solved(&[], &[("a", "b/4"), ("b", "c/2")]), "a=1 b=4 c=8");
        assert_eq!(solved(&[("n", 0)], &[("n", "0")]), "");
        assert_eq!(solved(&[("n", 0)], &[("n", "4")]), "-");
    }
}
