//! Operands of products that are converted to a wider type where they are multiplied.
//!
//! A program may convert whole matrices of `f16` or `i8` before it multiplies them. In the form that is made here, the product reads
//! the matrices as they are, and converts elements when it multiplies them: matrix instructions multiply narrow elements, and a block
//! of these takes less local memory. Where there are no such instructions, each conversion is made many times, so the program as it is
//! written stays as another form.

use super::build::{self, Built, reduces};
use crate::calculus::nesting::is_pure;
use crate::calculus::op::products::Products;
use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::lang::typed::ScalarOp;

/// Returns the term with the operands of its products converted where they are multiplied; `None` if none of them is converted.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn operands(t: &Term) -> Result<Option<Term>, TypeError> {
    let mut converts = false;
    t.visit(&mut |t| converts |= is_conversion(t));
    if !converts {
        return Ok(None);
    }
    let widened = each_product(t, &product)?;
    Ok((widened != *t).then_some(widened))
}

/// A change of the sides and of the element of a product of all pairs, of so many rows on each side.
pub(super) type OnProduct<'a> =
    &'a dyn Fn(&Term, &Term, [&Size; 2]) -> Result<Option<[Term; 2]>, TypeError>;

/// Returns the term with its products of all pairs changed, those for which `change` gives others.
pub(super) fn each_product(t: &Term, change: OnProduct) -> Built {
    let mut done = Term::id(&t.ty().dom);
    let mut chain = t.chain();
    // The sides of a product in a batch are those of the batch.
    if let Some(cross) = chain.last()
        && *cross.op() == Op::Cross
    {
        let (a, b) = build::halves(&cross.ty().dom)?;
        chain.push(Term::new(Op::Bimap, vec![], vec![], vec![Term::id(&a), Term::id(&b)])?);
    }
    // The first that is applied is the last.
    while let Some(f) = chain.pop() {
        let f = match f.op() {
            Op::Fork | Op::Bimap => build::each_arg(&f, |a| each_product(a, change))?,
            Op::Fold | Op::While => build::each_arg(&f, |a| each_product(a, change))?,
            Op::Map(MapKind::Plain) if reduces(&f) => {
                let changed = build::each_arg(&f, |a| each_product(a, change))?;
                if changed == f { f } else { without_conversions(&changed, &mut done)? }
            }
            _ => f,
        };
        match of_pairs(&f, &chain, change)? {
            Some(product) => {
                chain.truncate(chain.len() - 2);
                done = build::compose(&product, &done)?;
            }
            None if f.args().iter().all(|a| *a.op() == Op::Id) && *f.op() == Op::Bimap => {}
            None => done = build::compose(&f, &done)?,
        }
    }
    Ok(done)
}

/// Returns a map over a batch without the conversions of the sides with which its function begins: they follow `before`, in maps of
/// their own. What the function computes besides, such as the rows of the other side, does not share a kernel with them then.
fn without_conversions(f: &Term, before: &mut Term) -> Built {
    let (chain, n) = (f.args()[0].chain(), &f.sizes()[0]);
    let map = |f: &Term| build::map(MapKind::Plain, n, f);
    if let Some((sides, rest @ [_, ..])) = chain.split_last()
        && *sides.op() == Op::Bimap
        && sides.args().iter().any(converts)
    {
        let apart = |side: &Term| match converts(side) {
            true => [side.clone(), Term::id(&side.ty().cod)],
            false => [Term::id(&side.ty().dom), side.clone()],
        };
        let [[a, of_a], [b, of_b]] = [apart(&sides.args()[0]), apart(&sides.args()[1])];
        let each = [map(&a)?, map(&b)?];
        *before = match &before.chain()[..] {
            [zip, pair @ ..] if *zip.op() == Op::Zip => {
                let pair = match pair {
                    [] => Term::id(&zip.ty().dom),
                    pair => Term::of_chain(pair)?,
                };
                build::view(Op::Zip, &build::compose(&build::bimap(&each[0], &each[1])?, &pair)?)?
            }
            _ => build::compose(&map(&build::bimap(&a, &b)?)?, before)?,
        };
        return map(&build::compose(&Term::of_chain(rest)?, &build::bimap(&of_a, &of_b)?)?);
    }
    // In a batch of batches, the conversions of the inner one are between views.
    let pair = chain.windows(2).position(|two| *two[0].op() == Op::Zip && is_pair(&two[1]));
    let Some((user, [pair, views @ ..])) = pair.map(|at| chain.split_at(at + 1)) else {
        return Ok(f.clone());
    };
    let moves = pair.args().iter().any(converts)
        && pair.args().iter().all(|side| converts(side) || is_pure(side))
        && views.iter().all(is_pure)
        && user.len() > 1;
    if !moves {
        return Ok(f.clone());
    }
    let each = [map(&pair.args()[0])?, map(&pair.args()[1])?];
    let first = build::mapped(n, views, before)?;
    *before = build::compose(&build::view(Op::Zip, &build::fork(&each[0], &each[1])?)?, &first)?;
    map(&Term::of_chain(user)?)
}

fn is_pair(f: &Term) -> bool {
    *f.op() == Op::Fork
}

/// Whether a function only converts numbers and rearranges them.
fn converts(f: &Term) -> bool {
    converts_or_moves(f) && !f.chain().iter().all(is_pure)
}

fn converts_or_moves(f: &Term) -> bool {
    f.chain().iter().all(|f| only_converts(f) || is_pure(f))
}

/// Whether a function only converts numbers, and rearranges what it converts inside of rows.
fn only_converts(f: &Term) -> bool {
    match f.op() {
        Op::Id => true,
        Op::Map(MapKind::Plain) => converts_or_moves(&f.args()[0]),
        Op::Scalar(f) => matches!(&f.body, SExpr::Op(ScalarOp::Cast(_), ..)),
        _ => false,
    }
}

/// Returns the product of all pairs of two sides, changed; `None` if this is none, or if it stays.
fn of_pairs(sides: &Term, after: &[Term], change: OnProduct) -> Result<Option<Term>, TypeError> {
    let [.., pairs, cross] = after else { return Ok(None) };
    let is_map = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    let is_pair = matches!(sides.op(), Op::Fork | Op::Bimap) && *cross.op() == Op::Cross;
    if !is_pair || !is_map(pairs) || !is_map(&pairs.args()[0]) || !reduces(pairs) {
        return Ok(None);
    }
    let [n, m] = [0, 1].map(|k| &cross.sizes()[k]);
    let element = &pairs.args()[0].args()[0];
    let Some([sides, element]) = change(sides, element, [n, m])? else { return Ok(None) };
    let inner = build::map(MapKind::Plain, m, &element)?;
    let all = build::view(Op::Cross, &sides)?;
    build::compose(&build::map(MapKind::Plain, n, &inner)?, &all).map(Some)
}

/// Returns the sides as they are before their conversion, and the element with the conversions; `None` if nothing is converted.
fn product(sides: &Term, element: &Term, _: [&Size; 2]) -> Result<Option<[Term; 2]>, TypeError> {
    let (a, b) = (narrow(&sides.args()[0])?, narrow(&sides.args()[1])?);
    if a.is_none() && b.is_none() {
        return Ok(None);
    }
    let side = |found: Option<[Term; 2]>, k: usize| -> Result<[Term; 2], TypeError> {
        let whole = &sides.args()[k];
        let row = build::elements(&whole.ty().cod)?.1;
        Ok(found.unwrap_or_else(|| [whole.clone(), Term::id(&row)]))
    };
    let ([a, of_a], [b, of_b]) = (side(a, 0)?, side(b, 1)?);
    let sides = match sides.op() {
        Op::Fork => build::fork(&a, &b)?,
        _ => build::bimap(&a, &b)?,
    };
    let element = pushed(element, &build::bimap(&of_a, &of_b)?)?;
    Ok(Some([sides, element]))
}

/// Whether this converts an element for which there are matrix instructions to the type of their sums.
fn is_conversion(f: &Term) -> bool {
    let Op::Scalar(f) = f.op() else { return false };
    let is = |t: &Ty, s| *t == Ty::Scalar(s);
    matches!(&f.body, SExpr::Op(ScalarOp::Cast(_), _, of) if of[..] == [SExpr::Arg])
        && Products::ALL
            .iter()
            .any(|p| p.operand() != p.sum() && is(&f.dom, p.operand()) && is(&f.cod, p.sum()))
}

/// Returns one side of a product without its conversion, and the conversion of a row; `None` if nothing is converted.
fn narrow(side: &Term) -> Result<Option<[Term; 2]>, TypeError> {
    let chain = side.chain();
    let Some(at) = chain.iter().position(|f| *f.op() != Op::Transpose) else { return Ok(None) };
    let (views, rest) = chain.split_at(at);
    let (map, before) = (&rest[0], &rest[1..]);
    match map.op() {
        Op::Map(MapKind::Plain) if *map.args()[0].op() == Op::Map(MapKind::Plain) => {
            let conversion = &map.args()[0].args()[0];
            if !is_conversion(conversion) {
                return Ok(None);
            }
            let before = match before {
                [] => Term::id(&map.ty().dom),
                before => Term::of_chain(before)?,
            };
            let narrow = views.iter().try_fold(before, |t, _| build::view(Op::Transpose, &t))?;
            let (k, _) = build::elements(&build::elements(&side.ty().cod)?.1)?;
            Ok(Some([narrow, build::map(MapKind::Plain, &k, conversion)?]))
        }
        // Rows with something besides.
        Op::Zip if views.is_empty() && matches!(before, [f] if *f.op() == Op::Fork) => {
            let (a, b) = (&before[0].args()[0], &before[0].args()[1]);
            let Some([a, of_row]) = narrow(a)? else { return Ok(None) };
            let beside = Term::id(&build::elements(&b.ty().cod)?.1);
            let zipped = build::view(Op::Zip, &build::fork(&a, b)?)?;
            Ok(Some([zipped, build::bimap(&of_row, &beside)?]))
        }
        _ => Ok(None),
    }
}

/// Returns a function of elements after conversions of rows, which move to the function that first takes elements.
fn pushed(f: &Term, conversions: &Term) -> Built {
    let mut done = conversions.clone();
    for f in f.chain().iter().rev() {
        done = match f.op() {
            Op::Fork => build::fork(&pushed(&f.args()[0], &done)?, &pushed(&f.args()[1], &done)?)?,
            Op::Zip => match zipped(&done)? {
                Some(zipped) => zipped,
                None => build::compose(f, &done)?,
            },
            Op::Map(MapKind::Plain) => match of_converted(f, &done)? {
                Some(map) => map,
                None => build::compose(f, &done)?,
            },
            _ => build::compose(f, &done)?,
        };
    }
    Ok(done)
}

/// Returns the pairs of two arrays that are converted, as pairs that are.
fn zipped(sides: &Term) -> Result<Option<Term>, TypeError> {
    if !matches!(sides.op(), Op::Bimap | Op::Fork) {
        return Ok(None);
    }
    // What is converted, and the conversion of an element.
    let apart = |side: &Term| -> Result<(Term, Option<Term>), TypeError> {
        let chain = side.chain();
        match chain[0].op() {
            Op::Map(MapKind::Plain) if is_conversion(&chain[0].args()[0]) => {
                Ok((build::rest(side)?, Some(chain[0].args()[0].clone())))
            }
            _ => Ok((side.clone(), None)),
        }
    };
    let ((a, of_a), (b, of_b)) = (apart(&sides.args()[0])?, apart(&sides.args()[1])?);
    if of_a.is_none() && of_b.is_none() {
        return Ok(None);
    }
    let narrow = match sides.op() {
        Op::Fork => build::fork(&a, &b)?,
        _ => build::bimap(&a, &b)?,
    };
    let pairs = build::view(Op::Zip, &narrow)?;
    let (n, pair) = build::elements(&pairs.ty().cod)?;
    let (x, y) = build::halves(&pair)?;
    if !pair.is_scalar() {
        return Ok(None);
    }
    let part = |of: Option<Term>, second: bool| {
        let it = SExpr::Arg.proj(second);
        match of.as_ref().map(Term::op) {
            Some(Op::Scalar(f)) => (f.body.at(&it), f.cod.clone()),
            _ => (it, if second { y.clone() } else { x.clone() }),
        }
    };
    let ((a, x), (b, y)) = (part(of_a, false), part(of_b, true));
    let both = ScalarFn { dom: pair, cod: Ty::pair(&x, &y), body: SExpr::pair(a, b) };
    build::compose(&build::map(MapKind::Plain, &n, &Term::scalar(both))?, &pairs).map(Some)
}

/// Returns a map of a scalar function after a map of another one, as one map.
fn of_converted(map: &Term, before: &Term) -> Result<Option<Term>, TypeError> {
    let chain = before.chain();
    let (Op::Scalar(second), Op::Map(MapKind::Plain)) = (map.args()[0].op(), chain[0].op()) else {
        return Ok(None);
    };
    let Op::Scalar(first) = chain[0].args()[0].op() else { return Ok(None) };
    let both = Term::scalar(second.after(first));
    let one = build::map(MapKind::Plain, &map.sizes()[0], &both)?;
    build::compose(&one, &build::rest(before)?).map(Some)
}
