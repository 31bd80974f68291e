//! Side conditions by name, and the tunables a rule may introduce.

use crate::calculus::size::{Size, Sym};

/// What must hold for a rule to apply. Names are the rule's own variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// `tileable n k`: `n` may be split, being fewer than `k` tiles deep and no vector width.
    Tileable(Size, usize),
    /// `whole n`: `n` measures the data, not a number of partial results: nothing in it is rounded up.
    Whole(Size),
    /// `dimension n`: `n` is a dimension of the program or a tile of one.
    Dimension(Size),
    /// `tile n`: `n` is a tile.
    Tile(Size),
    /// `differ n m`: the sizes are not the same.
    Differ(Size, Size),
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
    /// `lanewise f`: every lane of a vector can run `f` by itself, and it gives elements.
    Lanewise(String),
    /// `computes f`: `f` does more than rearrange.
    Computes(String),
}

impl Condition {
    /// The name in rule files.
    pub fn name(&self) -> &'static str {
        match self {
            Condition::Tileable(..) => "tileable",
            Condition::Whole(_) => "whole",
            Condition::Dimension(_) => "dimension",
            Condition::Tile(_) => "tile",
            Condition::Differ(..) => "differ",
            Condition::Small(_) => "small",
            Condition::Commutative(_) => "commutative",
            Condition::Scalar(_) => "scalar",
            Condition::Element(_) => "element",
            Condition::Vectorisable(_) => "vectorisable",
            Condition::Lanewise(_) => "lanewise",
            Condition::Computes(_) => "computes",
        }
    }

    /// Every condition with its arguments and its meaning, for the documentation.
    pub const DOCUMENTED: &'static [(&'static str, &'static str)] = &[
        (
            "tileable n k",
            "the length n may be split: it is fewer than k tiles deep and no vector width",
        ),
        ("whole n", "n measures the data, not a number of partial results"),
        ("dimension n", "n is a dimension of the program or a tile of one"),
        ("tile n", "n is a tile"),
        ("differ n m", "the sizes n and m are not the same"),
        ("small n", "n is a vector width or an innermost tile, so a loop over it can be unrolled"),
        ("commutative f", "f is known to be commutative"),
        ("scalar a", "the type a is a scalar, or pairs of scalars"),
        ("element a", "a value of type a fits in registers: scalars, vectors, pairs of them"),
        ("vectorisable f", "f has a component-wise form on vectors"),
        (
            "lanewise f",
            "f gives elements by views, reductions and functions of elements, so that every lane of a vector can run it by itself",
        ),
        ("computes f", "f does more than rearrange its argument"),
    ];
}

/// How a rule makes a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SizeMaker {
    /// `tile n`: the tunable that tiles `n`.
    Tile,
    /// `width n`: the vector width along `n`.
    Width,
    /// `round n`: `n`, rounded up to its tiles where tiles need not divide it.
    Round,
}

/// `let name = maker of`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LetSize {
    /// The rule's size variable that is made.
    pub name: String,
    /// How.
    pub maker: SizeMaker,
    /// From what.
    pub of: Size,
}

impl SizeMaker {
    /// Makes the size from a concrete one.
    pub fn make(self, of: &Size) -> Size {
        match self {
            SizeMaker::Tile => of.tile(),
            SizeMaker::Width => of.width(),
            SizeMaker::Round => round_up(of),
        }
    }
}

/// The size itself when its tiles can be chosen to divide it (it is made of tiles alone), else the
/// dimension that it is rounded up to.
pub fn round_up(of: &Size) -> Size {
    let free = of.factors().any(|(s, e)| e > 0 && !matches!(s, Sym::Tile(_) | Sym::Width(_)));
    if free || of.factors().next().is_none() { of.round() } else { of.clone() }
}

/// Whether splitting `n` leaves something: not a number below 2, not a vector width.
pub fn can_tile(n: &Size, levels: usize) -> bool {
    n.level() < levels
        && !matches!(n.as_sym(), Some(Sym::Width(_)))
        && n.as_constant().is_none_or(|c| c > 1)
}

/// Whether a loop of that length can be short: a vector width, a tile, a size made of inner tiles
/// alone (their values are chosen so), or a small number.
pub fn can_unroll(n: &Size) -> bool {
    match n.as_constant() {
        Some(c) => c <= 16,
        None => match n.as_sym() {
            Some(Sym::Width(_) | Sym::Tile(_)) => true,
            _ => {
                n.level() >= 2
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
        assert!(can_tile(&n, 1) && !can_tile(&n.tile(), 1) && !can_tile(&n.width(), 3));
    }
}
