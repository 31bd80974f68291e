//! Elements of fewer than 4 bytes in words of 4 bytes, as matrix instructions read them: the first element lowest.

use crate::calculus::scalar::Lit;
use crate::kernel::ir::index::Index;
use crate::kernel::ir::{ElemTy, Expr};
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;

/// The type of words.
pub const WORD: ScalarType = ScalarType::U32;

/// Returns the number of elements in a word.
pub fn in_word(t: ScalarType) -> i64 {
    i64::try_from(WORD.bytes() / t.bytes().max(1)).unwrap_or(1)
}

/// The type of the bits of an element.
fn bits(t: ElemTy) -> ElemTy {
    let scalar = if t.scalar.bytes() == 2 { ScalarType::U16 } else { ScalarType::U8 };
    ElemTy { scalar, ..t }
}

/// Returns element `k` of a word.
pub fn part(word: Expr, t: ScalarType, k: &Index) -> Expr {
    let t = ElemTy::scalar(t);
    let bits = bits(t);
    let places = k.times(i64::try_from(t.scalar.bits()).unwrap_or(0));
    let first = match places.as_constant() {
        Some(0) => word,
        _ => Expr::Op(ScalarOp::Shr, ElemTy::scalar(WORD), vec![word, Expr::Index(places, WORD)]),
    };
    let part = Expr::Op(ScalarOp::Cast(bits.scalar), bits, vec![first]);
    Expr::Op(ScalarOp::Bits, t, vec![part])
}

/// Returns the word of which this is the first element.
pub fn whole(first: &Expr) -> Option<&Expr> {
    let Expr::Op(ScalarOp::Bits, _, part) = first else { return None };
    let [Expr::Op(ScalarOp::Cast(_), _, word)] = &part[..] else { return None };
    match &word[..] {
        [word @ Expr::Load(..)] if word.ty() == ElemTy::scalar(WORD) => Some(word),
        _ => None,
    }
}

/// Returns words with these elements.
pub fn pack(words: &[Vec<Expr>]) -> Expr {
    let t = ElemTy { scalar: WORD, width: words.len() };
    // Words that lie in memory are read as they are.
    if let Some(all) = run(words) {
        return Expr::Op(ScalarOp::Bits, t, vec![all]);
    }
    let part = |k: usize| {
        let e = Expr::vector(words.iter().filter_map(|w| w.get(k).cloned()).collect());
        let places = i128::try_from(k * e.ty().scalar.bits()).unwrap_or(0);
        let bits = Expr::Op(ScalarOp::Bits, bits(e.ty()), vec![e]);
        let wide = Expr::Op(ScalarOp::Cast(WORD), t, vec![bits]);
        if k == 0 {
            return wide;
        }
        let places = Expr::Lit(Lit::int(WORD, places)).widen(t.width);
        Expr::Op(ScalarOp::Shl, t, vec![wide, places])
    };
    let parts = (0..words.first().map_or(0, Vec::len)).map(part);
    let either = |a, b| Expr::Op(ScalarOp::BitOr, t, vec![a, b]);
    parts.reduce(either).unwrap_or_else(|| Expr::Vector(vec![]))
}

/// Returns the load of all elements of words, if they lie in memory one after the other.
pub fn run(words: &[Vec<Expr>]) -> Option<Expr> {
    let all = Expr::vector(words.concat());
    is_one_load(&all).then_some(all)
}

/// Whether this is one load of several lanes, perhaps under a condition.
pub fn is_one_load(e: &Expr) -> bool {
    match e {
        Expr::Load(_, t, _) => t.width > 1,
        Expr::Guarded(_, a, _) => is_one_load(a),
        _ => false,
    }
}
