//! Side conditions by name, and the tunables that a rule may introduce.

use super::bindings::Bindings;
use super::facts::Facts;
use crate::calculus::size::{Size, Sym};
use crate::calculus::ty::Ty;
use std::fmt;

/// The least number in a program whose parts may be shared out: shorter arrays of a known length are parts themselves, such
/// as windows and rows of small matrices.
const LONG: u64 = 64;

/// A condition for a rule to apply. Names are the rule's own variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// `tileable n k`: `n` may be split, because it is fewer than `k` tiles deep and no vector width.
    Tileable(Size, usize),
    /// `whole n`: `n` measures the data, not a number of partial results: it contains no rounded size.
    Whole(Size),
    /// `dimension n`: `n` is a dimension of the program, a product of dimensions, a number of at least 64, or a tile.
    Dimension(Size),
    /// `tile n`: `n` is a tile.
    Tile(Size),
    /// `differ n m`: the sizes `n` and `m` are not the same.
    Differ(Size, Size),
    /// `divides k n`: `n` is a whole multiple of `k`, whatever its symbols stand for.
    Divides(Size, Size),
    /// `upto n k`: `n` is a number, and at most `k`.
    UpTo(Size, u64),
    /// `from n k`: `n` is a number, and at least `k`.
    From(Size, u64),
    /// `small n`: `n` is a vector width or an innermost tile, so that a loop over it can be unrolled.
    Small(Size),
    /// `commutative f`: `f` is known to be commutative.
    Commutative(String),
    /// `scalar a`: `a` is a scalar, or pairs of scalars.
    Scalar(String),
    /// `element a`: `a` fits in registers: scalars, vectors, pairs of them.
    Element(String),
    /// `vectorisable f`: `f` has a component-wise form.
    Vectorisable(String),
    /// `lanewise f`: every lane of a vector can run `f` by itself, and the results of `f` are elements.
    Lanewise(String),
    /// `elementwise f`: `f` is a function of elements, or maps of such a function.
    Elementwise(String),
    /// `rounds r n`: `r` is `n`, or `n` rounded up. So it is 0 if `n` is.
    Rounds(Size, Size),
    /// `computes f`: `f` does more than rearrange its argument.
    Computes(String),
    /// `rearranges f`: `f` only rearranges its argument.
    Rearranges(String),
    /// `tiles f`: `f` works on all pairs, tile by tile.
    Tiles(String),
    /// `scans f`: `f` scans an array.
    Scans(String),
    /// `cheap f`: `f` rearranges, and computes elements by a few quick operations.
    Cheap(String),
}

impl Condition {
    /// Returns the name of the condition in rule files.
    pub fn name(&self) -> &'static str {
        match self {
            Condition::Tileable(..) => "tileable",
            Condition::Whole(_) => "whole",
            Condition::Dimension(_) => "dimension",
            Condition::Tile(_) => "tile",
            Condition::Differ(..) => "differ",
            Condition::Divides(..) => "divides",
            Condition::Rounds(..) => "rounds",
            Condition::UpTo(..) => "upto",
            Condition::From(..) => "from",
            Condition::Small(_) => "small",
            Condition::Commutative(_) => "commutative",
            Condition::Scalar(_) => "scalar",
            Condition::Element(_) => "element",
            Condition::Vectorisable(_) => "vectorisable",
            Condition::Lanewise(_) => "lanewise",
            Condition::Elementwise(_) => "elementwise",
            Condition::Computes(_) => "computes",
            Condition::Rearranges(_) => "rearranges",
            Condition::Tiles(_) => "tiles",
            Condition::Scans(_) => "scans",
            Condition::Cheap(_) => "cheap",
        }
    }

    /// Returns the function variable that the condition asks about.
    pub fn function(&self) -> Option<&str> {
        match self {
            Condition::Commutative(f)
            | Condition::Vectorisable(f)
            | Condition::Lanewise(f)
            | Condition::Elementwise(f)
            | Condition::Computes(f)
            | Condition::Rearranges(f)
            | Condition::Tiles(f)
            | Condition::Scans(f)
            | Condition::Cheap(f) => Some(f),
            Condition::Tileable(..)
            | Condition::Whole(_)
            | Condition::Dimension(_)
            | Condition::Tile(_)
            | Condition::Differ(..)
            | Condition::Divides(..)
            | Condition::Rounds(..)
            | Condition::UpTo(..)
            | Condition::From(..)
            | Condition::Small(_)
            | Condition::Scalar(_)
            | Condition::Element(_) => None,
        }
    }

    /// Returns the sizes that the condition asks about.
    pub fn sizes(&self) -> Vec<&Size> {
        match self {
            Condition::Tileable(n, _)
            | Condition::Whole(n)
            | Condition::Dimension(n)
            | Condition::Tile(n)
            | Condition::UpTo(n, _)
            | Condition::From(n, _)
            | Condition::Small(n) => vec![n],
            Condition::Differ(n, m) | Condition::Divides(n, m) | Condition::Rounds(n, m) => {
                vec![n, m]
            }
            _ => vec![],
        }
    }

    /// Returns the type variable that the condition asks about.
    pub fn ty(&self) -> Option<&str> {
        match self {
            Condition::Scalar(a) | Condition::Element(a) => Some(a),
            _ => None,
        }
    }

    /// Whether the condition asks about no function, and all of its variables have values.
    pub fn is_decided(&self, b: &Bindings) -> bool {
        self.function().is_none()
            && self.sizes().into_iter().all(|n| !b.size(n).has_meta())
            && self.ty().is_none_or(|a| b.type_of(a).is_some())
    }

    /// Whether the condition holds for these values; `facts` gives the facts known of a function variable.
    pub fn holds(&self, b: &Bindings, facts: &dyn Fn(&str) -> Facts) -> bool {
        match self {
            Condition::Tileable(n, k) => can_tile(&b.size(n), *k),
            Condition::Whole(n) => !is_rounded(&b.size(n)),
            Condition::Dimension(n) => {
                let n = b.size(n);
                matches!(n.as_sym(), Some(Sym::Tile(_)))
                    || n.as_constant().is_none_or(|n| n >= LONG)
                        && n.factors().all(|(s, _)| matches!(s, Sym::Dim(_)))
            }
            Condition::Tile(n) => matches!(b.size(n).as_sym(), Some(Sym::Tile(_))),
            Condition::Differ(n, m) => b.size(n) != b.size(m),
            Condition::Divides(k, n) => divides(&b.size(k), &b.size(n)),
            Condition::Rounds(r, n) => b.size(r) == b.size(n) || b.size(r) == round_up(&b.size(n)),
            Condition::UpTo(n, k) => b.size(n).as_constant().is_some_and(|n| n <= *k),
            Condition::From(n, k) => b.size(n).as_constant().is_some_and(|n| n >= *k),
            Condition::Small(n) => can_unroll(&b.size(n)),
            Condition::Commutative(f) => facts(f).commutative,
            Condition::Vectorisable(f) => facts(f).vectorisable,
            Condition::Lanewise(f) => facts(f).lanewise && facts(f).scalar,
            Condition::Elementwise(f) => facts(f).elementwise,
            Condition::Computes(f) => !facts(f).view,
            Condition::Rearranges(f) => facts(f).view,
            Condition::Tiles(f) => facts(f).tiles,
            Condition::Scans(f) => facts(f).scans,
            Condition::Cheap(f) => facts(f).cheap,
            Condition::Scalar(a) => b.type_of(a).is_some_and(Ty::is_scalar),
            Condition::Element(a) => b.type_of(a).is_some_and(Ty::is_element),
        }
    }

    /// Returns the values of the condition's variables as text that shows why it holds or fails: `n is n.t0,
    /// 1 tile deep`. `function` gives the value of a function variable as text.
    pub fn values(&self, b: &Bindings, function: &dyn Fn(&str) -> String) -> String {
        let name = |s: &Size| s.to_string().replace('?', "");
        let is = |n: &Size| format!("{} is {}", name(n), b.size(n));
        match self {
            Condition::Tileable(n, _) => {
                let value = b.size(n);
                match (value.as_sym(), value.level()) {
                    (Some(Sym::Width(_)), _) => format!("{}, a vector width", is(n)),
                    (_, 1) => format!("{}, 1 tile deep", is(n)),
                    (_, level) => format!("{}, {level} tiles deep", is(n)),
                }
            }
            Condition::Whole(n) if is_rounded(&b.size(n)) => format!("{}, rounded up", is(n)),
            Condition::Whole(n)
            | Condition::Dimension(n)
            | Condition::Tile(n)
            | Condition::UpTo(n, _)
            | Condition::From(n, _)
            | Condition::Small(n) => is(n),
            Condition::Differ(n, m) | Condition::Divides(n, m) | Condition::Rounds(n, m) => {
                format!("{}, {}", is(n), is(m))
            }
            Condition::Scalar(a) | Condition::Element(a) => match b.type_of(a) {
                Some(t) => format!("{a} is {t}"),
                None => format!("{a} is unknown"),
            },
            of_function => {
                of_function.function().map_or(String::new(), |f| format!("{f} is {}", function(f)))
            }
        }
    }

    /// Every condition with its arguments and its meaning, for the documentation.
    pub const DOCUMENTED: &'static [(&'static str, &'static str)] = &[
        (
            "tileable n k",
            "the length n may be split: it is fewer than k tiles deep and no vector width",
        ),
        ("whole n", "n measures the data, not a number of partial results"),
        (
            "dimension n",
            "n is a dimension of the program, a product or a quotient of dimensions and whole numbers, a number of at least 64, or a tile",
        ),
        ("tile n", "n is a tile"),
        ("differ n m", "the sizes n and m are not the same"),
        ("divides k n", "n is a whole multiple of k, whatever its symbols stand for"),
        ("upto n k", "n is a number, and at most k"),
        ("from n k", "n is a number, and at least k"),
        ("small n", "n is a vector width or an innermost tile, so a loop over it can be unrolled"),
        ("commutative f", "f is known to be commutative"),
        ("rounds r n", "r is n, or n rounded up to a multiple of its tiles"),
        ("scalar a", "the type a is a scalar, or pairs of scalars"),
        ("element a", "a value of type a fits in registers: scalars, vectors, pairs of them"),
        ("vectorisable f", "f has a component-wise form on vectors"),
        (
            "lanewise f",
            "f gives elements by views, reductions and functions of elements, so that every lane of a vector can run it by itself",
        ),
        ("elementwise f", "f is a function of elements, or maps of such a function"),
        ("computes f", "f does more than rearrange its argument"),
        ("rearranges f", "f does no more than rearrange its argument"),
        ("tiles f", "f does something with all pairs, tile by tile"),
        ("scans f", "f scans an array, and may compute more from the results"),
        ("cheap f", "f rearranges, and computes elements by a few quick operations"),
    ];
}

fn is_rounded(n: &Size) -> bool {
    let mut rounded = false;
    n.visit(&mut |s| rounded |= matches!(s, Sym::Round(_)));
    rounded
}

impl fmt::Display for Condition {
    /// Formats the condition as rule files write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |s: &Size| s.to_string().replace('?', "");
        write!(f, "{} ", self.name())?;
        match self {
            Condition::Tileable(n, k) => write!(f, "{} {k}", size(n)),
            Condition::UpTo(n, k) | Condition::From(n, k) => write!(f, "{} {k}", size(n)),
            Condition::Differ(n, m) | Condition::Divides(n, m) | Condition::Rounds(n, m) => {
                write!(f, "{} {}", size(n), size(m))
            }
            Condition::Whole(n)
            | Condition::Dimension(n)
            | Condition::Tile(n)
            | Condition::Small(n) => f.write_str(&size(n)),
            Condition::Scalar(a) | Condition::Element(a) => f.write_str(a),
            of_function => f.write_str(of_function.function().unwrap_or_default()),
        }
    }
}

/// The ways in which a rule makes a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SizeMaker {
    /// `tile n`: the tunable that tiles `n`.
    Tile,
    /// `width n`: the vector width along `n`.
    Width,
    /// `round n`: `n` rounded up to a multiple of its tiles, if these need not divide it.
    Round,
}

/// `let name = maker of`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LetSize {
    /// The size variable that is made.
    pub name: String,
    /// How the size is made.
    pub maker: SizeMaker,
    /// The size that it is made from.
    pub of: Size,
}

impl fmt::Display for LetSize {
    /// Formats the definition as rule files write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let maker = match self.maker {
            SizeMaker::Tile => "tile",
            SizeMaker::Width => "width",
            SizeMaker::Round => "round",
        };
        let of = self.of.to_string().replace('?', "");
        let of = if self.of.as_sym().is_some() { of } else { format!("({of})") };
        write!(f, "{} = {maker} {of}", self.name)
    }
}

impl SizeMaker {
    /// Returns the size made from `of`.
    pub fn make(self, of: &Size) -> Size {
        match self {
            SizeMaker::Tile => of.tile(),
            SizeMaker::Width => of.width(),
            SizeMaker::Round => round_up(of),
        }
    }
}

/// Returns the size itself if its tiles can be chosen to divide it (it consists of tiles and widths alone),
/// else the symbol of the size rounded up.
pub fn round_up(of: &Size) -> Size {
    let free = of.factors().any(|(s, e)| e > 0 && !matches!(s, Sym::Tile(_) | Sym::Width(_)));
    if free || of.factors().next().is_none() { of.round() } else { of.clone() }
}

/// Whether `n` is a whole multiple of `k` for every value of its symbols.
pub fn divides(k: &Size, n: &Size) -> bool {
    if k.as_constant() == Some(0) {
        return false;
    }
    let q = n.div(k);
    q.coefficient().1 == 1 && q.factors().all(|(_, e)| e > 0)
}

/// Whether splitting `n` is useful: `n` is fewer than `levels` tiles deep, no vector width, and not a number
/// below 2.
pub fn can_tile(n: &Size, levels: usize) -> bool {
    n.level() < levels
        && !matches!(n.as_sym(), Some(Sym::Width(_)))
        && n.as_constant().is_none_or(|c| c > 1)
}

/// Whether a loop of that length can be short: a vector width, a tile, a size made of inner tiles alone
/// (their values are chosen to be small), or a small number.
pub fn can_unroll(n: &Size) -> bool {
    match n.as_constant() {
        Some(c) => c <= 16,
        None => match n.as_sym() {
            Some(Sym::Width(_) | Sym::Tile(_)) => true,
            _ => {
                n.level() >= 1
                    && n.factors().all(|(s, _)| !matches!(s, Sym::Dim(_) | Sym::Round(_)))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding() {
        let n = Size::dim("n");
        assert_eq!(round_up(&n), n.round());
        assert_eq!(round_up(&n.tile()), n.tile());
        assert_eq!(round_up(&n.tile().div(&n.tile().tile())), n.tile().div(&n.tile().tile()));
        let partials = n.round().div(&n.tile());
        assert_eq!(round_up(&partials), partials.round());
        let twelve = n.mul(&Size::constant(12));
        assert!(divides(&Size::constant(4), &twelve) && divides(&n, &twelve));
        assert!(!divides(&Size::constant(5), &twelve) && !divides(&n.tile(), &n));
        assert!(can_tile(&n, 1) && !can_tile(&n.tile(), 1) && !can_tile(&n.width(), 3));
    }

    #[test]
    fn quotients_of_dimensions_are_dimensions() {
        let none = Bindings::default();
        let holds = |n: &Size| Condition::Dimension(n.clone()).holds(&none, &|_| Facts::default());
        let (n, two) = (Size::dim("n"), Size::constant(2));
        assert!(holds(&n) && holds(&n.div(&two)) && holds(&n.mul(&two)));
        assert!(!holds(&two) && !holds(&n.div(&n.tile())));
    }
}
