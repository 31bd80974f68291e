//! Sizes inside terms: monomials over dimensions and tunables, in normal form.
//!
//! A sum such as `n + 2` is a dimension of its own ([`Sym::Dim`]), whose value the elaboration knows. So
//! every size in a term is a rational coefficient times a product of powers of symbols, and two sizes are
//! equal if their normal forms are.

use super::hashed::Hashed;
use indexmap::IndexMap;
use num_integer::gcd;
use rustc_hash::FxBuildHasher;
use std::fmt;
use std::sync::Arc;

/// A factor of a size.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sym {
    /// A dimension of the program; `--size` or the inputs give its value.
    Dim(Arc<str>),
    /// The tile of a size: a tunable. `n.t0` is the tile of `n`, `n.t0.t1` the tile of that tile.
    Tile(Size),
    /// The vector width along a size: a tunable, printed `n.v`.
    Width(Size),
    /// The size rounded up to a multiple of its tiles, printed `n^`.
    Round(Size),
    /// A size variable of a rule.
    Meta(Arc<str>),
}

impl Sym {
    /// Whether tuning chooses the value, or it follows from values that tuning chooses.
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        matches!(self, Sym::Tile(_) | Sym::Width(_) | Sym::Round(_))
    }

    /// Returns a dimension that stands for a size in one stage of a term: `n'1` for `n`, or `5'1` for 5.
    #[must_use]
    pub fn of_stage(common: &str, stage: usize) -> Sym {
        Sym::Dim(format!("{common}'{stage}").into())
    }

    /// Returns the symbol whose value is the number of resident work-groups that run the loop of the host with this number; the host
    /// runs a loop without a value. `loop` is a word of the language, so no size has this name.
    #[must_use]
    pub fn of_loop(number: usize) -> Sym {
        Sym::Tile(Size::dim(&format!("loop'{number}")))
    }

    /// Whether this is one of [`Sym::of_loop`].
    #[must_use]
    pub fn is_of_loop(&self) -> bool {
        let of = |of: &Size| match of.as_sym() {
            Some(Sym::Dim(name)) => name.starts_with("loop'"),
            _ => false,
        };
        matches!(self, Sym::Tile(size) if of(size))
    }

    /// Returns the size that [`Sym::of_stage`] was made of.
    #[must_use]
    pub fn common(&self) -> Option<Size> {
        let Sym::Dim(name) = self else { return None };
        let (common, stage) = name.rsplit_once('\'')?;
        stage.parse::<usize>().ok()?;
        Some(common.parse().map_or_else(|_| Size::dim(common), Size::constant))
    }
}

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Monomial {
    /// The coefficient in lowest terms; the denominator is at least 1.
    num: u64,
    den: u64,
    /// Symbols in order, with nonzero exponents.
    factors: Vec<(Sym, i32)>,
}

/// A monomial. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size(Arc<Hashed<Monomial>>);

/// Values of symbols.
pub type SizeEnv = IndexMap<Sym, u64, FxBuildHasher>;

/// The reason why a size has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A symbol that the environment lacks.
    #[error("`{0}` has no value")]
    Unbound(Sym),
    /// A quotient that is not whole.
    #[error("`{0}` is not a whole number here")]
    Inexact(Size),
    /// Too large for 64 bits.
    #[error("`{0}` overflows")]
    Overflow(Size),
}

impl Size {
    fn make(num: u64, den: u64, factors: Vec<(Sym, i32)>) -> Size {
        let made = if num == 0 {
            Monomial { num: 0, den: 1, factors: vec![] }
        } else {
            let g = gcd(num, den);
            Monomial { num: num / g, den: den / g, factors }
        };
        Size(Arc::new(Hashed::new(made)))
    }

    /// A number.
    pub fn constant(n: u64) -> Size {
        Size::make(n, 1, vec![])
    }

    /// Whether the size depends on a symbol whose value tuning chooses.
    pub fn is_chosen(&self) -> bool {
        self.0.factors.iter().any(|(s, _)| s.is_chosen())
    }

    /// One symbol.
    pub fn sym(s: Sym) -> Size {
        Size::make(1, 1, vec![(s, 1)])
    }

    /// A program dimension.
    pub fn dim(name: &str) -> Size {
        Size::sym(Sym::Dim(name.into()))
    }

    /// A rule's size variable.
    pub fn meta(name: &str) -> Size {
        Size::sym(Sym::Meta(name.into()))
    }

    /// The tile of this size.
    #[must_use]
    pub fn tile(&self) -> Size {
        Size::sym(Sym::Tile(self.clone()))
    }

    /// The vector width along this size.
    #[must_use]
    pub fn width(&self) -> Size {
        Size::sym(Sym::Width(self.clone()))
    }

    /// This size rounded up to a multiple of its tiles.
    #[must_use]
    pub fn round(&self) -> Size {
        Size::sym(Sym::Round(self.clone()))
    }

    fn combine(&self, other: &Size, sign: i32) -> Size {
        let (a, b) = (&self.0, &other.0);
        let mut factors = a.factors.clone();
        for (s, e) in &b.factors {
            match factors.binary_search_by(|(t, _)| t.cmp(s)) {
                Ok(at) => {
                    factors[at].1 += sign * e;
                    if factors[at].1 == 0 {
                        factors.remove(at);
                    }
                }
                Err(at) => factors.insert(at, (s.clone(), sign * e)),
            }
        }
        let (bn, bd) = if sign > 0 { (b.num, b.den) } else { (b.den, b.num) };
        // Cancel crosswise first, so that the products stay small.
        let (g, h) = (gcd(a.num, bd), gcd(bn, a.den));
        // A common divisor is 0 only if both numbers are.
        let (g, h) = (g.max(1), h.max(1));
        let (an, bd, bn, ad) = (a.num / g, bd / g, bn / h, a.den / h);
        Size::make(an.saturating_mul(bn), ad.saturating_mul(bd), factors)
    }

    /// Returns the product.
    #[must_use]
    pub fn mul(&self, other: &Size) -> Size {
        self.combine(other, 1)
    }

    /// Returns the quotient; `other` must not be the number 0.
    #[must_use]
    pub fn div(&self, other: &Size) -> Size {
        debug_assert!(other.0.num != 0, "division by the size 0");
        self.combine(other, -1)
    }

    /// Returns the number, if the size mentions no symbol.
    pub fn as_constant(&self) -> Option<u64> {
        (self.0.factors.is_empty() && self.0.den == 1).then_some(self.0.num)
    }

    /// Returns the symbol, if the size is a single one.
    pub fn as_sym(&self) -> Option<&Sym> {
        match (self.0.num, self.0.den, self.0.factors.as_slice()) {
            (1, 1, [(s, 1)]) => Some(s),
            _ => None,
        }
    }

    /// Returns the symbols with their exponents, in order.
    pub fn factors(&self) -> impl Iterator<Item = (&Sym, i32)> {
        self.0.factors.iter().map(|(s, e)| (s, *e))
    }

    /// Returns the coefficient as numerator and denominator.
    pub fn coefficient(&self) -> (u64, u64) {
        (self.0.num, self.0.den)
    }

    /// Returns the value of the size.
    pub fn eval(&self, env: &SizeEnv) -> Result<u64, SizeError> {
        let (mut num, mut den) = (u128::from(self.0.num), u128::from(self.0.den));
        for (s, e) in &self.0.factors {
            let v = u128::from(*env.get(s).ok_or_else(|| SizeError::Unbound(s.clone()))?);
            let side = if *e > 0 { &mut num } else { &mut den };
            for _ in 0..e.unsigned_abs() {
                *side = side.checked_mul(v).ok_or_else(|| SizeError::Overflow(self.clone()))?;
            }
        }
        if den == 0 {
            // A dimension of length 0 has no tiles, whatever their length.
            return if num == 0 { Ok(0) } else { Err(SizeError::Inexact(self.clone())) };
        }
        if num % den != 0 {
            return Err(SizeError::Inexact(self.clone()));
        }
        u64::try_from(num / den).map_err(|_| SizeError::Overflow(self.clone()))
    }

    /// Replaces symbols; symbols for which `f` returns `None` stay.
    #[must_use]
    pub fn substitute(&self, f: &dyn Fn(&Sym) -> Option<Size>) -> Size {
        let mut out = Size::make(self.0.num, self.0.den, vec![]);
        for (s, e) in &self.0.factors {
            let replaced = f(s).unwrap_or_else(|| {
                Size::sym(match s {
                    Sym::Dim(_) | Sym::Meta(_) => s.clone(),
                    Sym::Tile(t) => Sym::Tile(t.substitute(f)),
                    Sym::Width(t) => Sym::Width(t.substitute(f)),
                    Sym::Round(t) => Sym::Round(t.substitute(f)),
                })
            });
            for _ in 0..e.unsigned_abs() {
                out = if *e > 0 { out.mul(&replaced) } else { out.div(&replaced) };
            }
        }
        out
    }

    /// Calls `f` on every symbol, including those inside tunables, inner ones first.
    pub fn visit(&self, f: &mut dyn FnMut(&Sym)) {
        for (s, _) in &self.0.factors {
            match s {
                Sym::Dim(_) | Sym::Meta(_) => {}
                Sym::Tile(t) | Sym::Width(t) | Sym::Round(t) => t.visit(f),
            }
            f(s);
        }
    }

    /// Whether a rule's variable occurs in the size.
    pub fn has_meta(&self) -> bool {
        let mut found = false;
        self.visit(&mut |s| found |= matches!(s, Sym::Meta(_)));
        found
    }

    /// Returns how many tiles deep the size is: `n` is 0, `n.t0` and `n^/n.t0` are 1, `n.t0.t1` is 2.
    pub fn level(&self) -> usize {
        self.0.factors.iter().map(|(s, _)| s.level()).max().unwrap_or(0)
    }
}

impl Sym {
    /// See [`Size::level`].
    pub fn level(&self) -> usize {
        match self {
            Sym::Dim(_) | Sym::Meta(_) => 0,
            Sym::Tile(s) => s.level() + 1,
            Sym::Width(s) | Sym::Round(s) => s.level(),
        }
    }
}

impl fmt::Display for Sym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = |f: &mut fmt::Formatter<'_>, s: &Size| match s.as_sym() {
            Some(sym) => write!(f, "{sym}"),
            None if s.as_constant().is_some() => write!(f, "{s}"),
            None => write!(f, "({s})"),
        };
        match self {
            // A dimension whose name is a sum keeps its parentheses, so that products with it are
            // unambiguous.
            Sym::Dim(name) if name.contains([' ', '+', '-']) => write!(f, "({name})"),
            Sym::Dim(name) => f.write_str(name),
            Sym::Meta(name) => write!(f, "?{name}"),
            Sym::Tile(s) => {
                base(f, s)?;
                write!(f, ".t{}", s.level())
            }
            Sym::Width(s) => {
                base(f, s)?;
                write!(f, ".v")
            }
            Sym::Round(s) => {
                base(f, s)?;
                write!(f, "^")
            }
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.0;
        let mut over: Vec<String> = vec![];
        let mut under: Vec<String> = vec![];
        if m.num != 1 {
            over.push(m.num.to_string());
        }
        if m.den != 1 {
            under.push(m.den.to_string());
        }
        for (s, e) in &m.factors {
            let side = if *e > 0 { &mut over } else { &mut under };
            side.extend(std::iter::repeat_n(s.to_string(), e.unsigned_abs() as usize));
        }
        if over.is_empty() {
            over.push("1".to_owned());
        }
        f.write_str(&over.join("*"))?;
        for u in under {
            write!(f, "/{u}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        let (n, t) = (Size::dim("n"), Size::dim("n").tile());
        assert_eq!(n.div(&t).mul(&t), n);
        assert_eq!(n.mul(&Size::constant(6)).div(&Size::constant(4)).to_string(), "3*n/2");
        assert_eq!(n.round().div(&t).to_string(), "n^/n.t0");
        assert_eq!(t.tile().to_string(), "n.t0.t1");
        assert_eq!(n.round().div(&t).tile().to_string(), "(n^/n.t0).t1");
    }

    #[test]
    fn value() {
        let n = Size::dim("n");
        let env = SizeEnv::from_iter([(Sym::Dim("n".into()), 12), (Sym::Tile(n.clone()), 4)]);
        assert_eq!(n.div(&n.tile()).eval(&env), Ok(3));
        assert!(matches!(n.div(&Size::constant(5)).eval(&env), Err(SizeError::Inexact(_))));
        assert!(matches!(n.round().eval(&env), Err(SizeError::Unbound(_))));
    }
}
