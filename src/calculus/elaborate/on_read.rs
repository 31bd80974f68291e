//! Operands of products that are computed where they are read.
//!
//! A matrix that a map of a scalar function computes, such as weights of few bits with their scales, is stored before a product reads
//! it: it is written and read with all its bits. In the form that is made here, [`Op::OnRead`] stands around the map. No rule moves it,
//! and lowering computes each element where it is read: where a tile is copied to local memory, or in registers, by the work-item that
//! multiplies it with elements of several rows.
//!
//! Each tile of rows computes the elements again. So the form is made where an operand meets few rows. With many, the product takes so long
//! that the matrix may as well be stored. The cost model decides.

use super::build::{self, Built, reduces};
use crate::calculus::nesting::is_read;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Most rows that a computed operand meets, and most for which it need not be stored in any form.
pub(super) const FEW: u64 = 512;
pub(super) const FEWEST: u64 = 64;

/// Fewest elements of an operand.
const LARGE: u64 = 1 << 12;

/// Returns the term with the operands of its products that meet at most `few` rows computed where they are read; `None` if none of
/// them is computed.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn operands(t: &Term, few: u64, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let read = within(t, few, env)?;
    Ok((read != *t).then_some(read))
}

fn within(t: &Term, few: u64, env: &SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    let mut chain = t.chain();
    // The first that is applied is the last.
    while let Some(f) = chain.pop() {
        let f = match f.op() {
            Op::Fork | Op::Bimap if is_product(&chain) => {
                let cross = &chain[chain.len() - 1];
                let [n, m] = [0, 1].map(|k| cross.sizes()[k].clone());
                let sides = [(&f.args()[0], m), (&f.args()[1], n)];
                let is_few = |rows: &Size| rows.eval(env).is_ok_and(|rows| rows <= few);
                let side = |(side, partners): &(&Term, Size)| match is_few(partners) {
                    true => on_read(side, few, env),
                    false => within(side, few, env),
                };
                let args = sides.iter().map(side).collect::<Result<Vec<_>, _>>()?;
                f.with_args(args)?
            }
            Op::Fork | Op::Bimap | Op::Fold | Op::While => {
                build::each_arg(&f, |a| within(a, few, env))?
            }
            Op::Map(MapKind::Plain) if reduces(&f) => build::each_arg(&f, |a| within(a, few, env))?,
            _ => f,
        };
        done = build::compose(&f, &done)?;
    }
    Ok(done)
}

/// Whether the factors that follow reduce all pairs of rows.
fn is_product(after: &[Term]) -> bool {
    let [.., pairs, cross] = after else { return false };
    let is_map = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    *cross.op() == Op::Cross && is_map(pairs) && is_map(&pairs.args()[0]) && reduces(pairs)
}

/// Returns one side of a product with what it computes, element by element, where it is read.
fn on_read(side: &Term, few: u64, env: &SizeEnv) -> Built {
    let chain = side.chain();
    let Some(at) = chain.iter().position(|f| !f.is_view()) else { return Ok(side.clone()) };
    let (views, rest) = chain.split_at(at);
    let (read, before) = match rest[0].op() {
        // Some of the arrays that the rows consist of.
        Op::Fork | Op::Bimap => (build::each_arg(&rest[0], |a| on_read(a, few, env))?, &rest[1..]),
        Op::Map(MapKind::Plain) if is_large(&rest[0].ty().cod, env) => {
            let computed = rest.iter().take_while(|f| is_read(f)).count();
            let (maps, before) = rest.split_at(computed);
            if maps.is_empty() {
                return within(side, few, env);
            }
            (Term::new(Op::OnRead, vec![], vec![], vec![Term::of_chain(maps)?])?, before)
        }
        _ => return within(side, few, env),
    };
    let before = match before {
        [] => Term::id(&read.ty().dom),
        before => within(&Term::of_chain(before)?, few, env)?,
    };
    let done = build::compose(&read, &before)?;
    views.iter().rev().try_fold(done, |done, f| build::compose(f, &done))
}

/// Whether a matrix of scalars is large.
fn is_large(t: &Ty, env: &SizeEnv) -> bool {
    t.components().iter().any(|(lengths, _)| {
        let elements =
            lengths.iter().map(|n| n.eval(env).unwrap_or(1)).fold(1, u64::saturating_mul);
        lengths.len() >= 2 && elements >= LARGE
    })
}
