//! Names for the lengths of the rows that products reduce.
//!
//! A dimension has one tile, and rules leave numbers in one piece. Tiles of a product are good if they have many rows and columns, and short
//! parts of rows. So the rows of a product get a length with a name of its own if their length is that of a side of the result, as in a product of square
//! matrices, or a plain number, as that of `iota 32` and of `flatten` of a row of 16 pairs.
//!
//! `map (map f) . cross` becomes `map (map f) . cross . bimap (map (padLast row)) (map (padLast row))`: padding tells the calculus that both lengths are
//! equal, and adds no elements.

use super::build::{self, Built, compose, elements, halves};
use super::parts::{TILED, dimension};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Least number that gets a name: reductions of fewer elements are unrolled.
const NUMBER: u64 = 17;

/// Returns the term where the rows of products have a length with a name of its own. Its value is added to the environment.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn rows_named(t: &Term, env: &mut SizeEnv) -> Built {
    within(t, 1, env)
}

/// Names the rows of the products in a term that is applied `outer` times.
fn within(t: &Term, outer: u64, env: &mut SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        if let Some(k) = length(&f, outer, env) {
            let mut more = env.clone();
            let value = k.eval(env).unwrap_or_default();
            let row = dimension(&k, "row", value, &mut more);
            let named = named_sides(&done, &k, &row)?
                .filter(|sides| *sides != done)
                .and_then(|sides| compose(&retyped(&f, &sides.ty().cod).ok()?, &sides).ok())
                .filter(|named| named.ty().cod == f.ty().cod);
            if let Some(named) = named {
                (*env, done) = (more, named);
                continue;
            }
        }
        let f = match f.op() {
            Op::Map(MapKind::Plain) => {
                let count = f.sizes()[0].eval(env).unwrap_or(u64::MAX).saturating_mul(outer);
                build::each_arg(&f, |a| within(a, count, env))?
            }
            Op::Fork | Op::Bimap | Op::Fold | Op::While => {
                build::each_arg(&f, |a| within(a, outer, env))?
            }
            _ => f,
        };
        done = compose(&f, &done)?;
    }
    Ok(done)
}

/// Returns the length of the rows that a function of all pairs reduces, if it has no good tiles and the work is worth tiles.
fn length(f: &Term, outer: u64, env: &SizeEnv) -> Option<Size> {
    let is_map = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    let chain = f.args().first().filter(|_| is_map(f))?.chain();
    let inner = chain.iter().rev().find(|f| *f.op() != Op::Zip).filter(|f| is_map(f))?;
    let k = reduced(&inner.args()[0])?;
    let (n, m) = (&f.sizes()[0], &inner.sizes()[0]);
    let value = |s: &Size| s.eval(env).ok();
    let work = [value(n)?, value(m)?, value(&k)?].into_iter().fold(outer, u64::saturating_mul);
    let has_no_tile = [n, m].contains(&&k) || k.as_constant().is_some_and(|k| k >= NUMBER);
    (has_no_tile && work >= TILED).then_some(k)
}

/// Returns the length of the zipped rows that a function of a pair reduces.
fn reduced(f: &Term) -> Option<Size> {
    let chain = f.chain();
    let elementwise = |f: &Term| *f.op() == Op::Map(MapKind::Plain) && !build::reduces(f);
    for (at, f) in chain.iter().enumerate() {
        let zip = chain[at + 1..].iter().find(|f| !elementwise(f));
        let of_pair = match f.op() {
            Op::Fork | Op::Bimap => f.args().iter().find_map(reduced),
            _ if !build::is_associative(f) || zip.is_none_or(|f| *f.op() != Op::Zip) => None,
            _ => f.sizes().first().cloned(),
        };
        if of_pair.is_some() {
            return of_pair;
        }
    }
    None
}

/// Returns what gives all pairs, also in a zip with a matrix, with another name for the length of their rows.
fn named_sides(t: &Term, k: &Size, row: &Size) -> Result<Option<Term>, TypeError> {
    let chain = t.chain();
    let before = build::rest(t)?;
    match chain[0].op() {
        Op::Cross => {
            let (a, b) = halves(&before.ty().cod)?;
            let side = |t: &Ty| {
                let (n, of) = elements(t)?;
                build::map(MapKind::Plain, &n, &named(&of, k, row)?)
            };
            let sides = compose(&build::bimap(&side(&a)?, &side(&b)?)?, &before)?;
            build::view(Op::Cross, &sides).map(Some)
        }
        Op::Zip => {
            let both = match chain.get(1) {
                Some(both) if matches!(both.op(), Op::Fork | Op::Bimap) => both,
                _ => return Ok(None),
            };
            let is_cross = |a: &Term| *a.chain()[0].op() == Op::Cross;
            let Some(at) = both.args().iter().position(is_cross) else { return Ok(None) };
            let mut args = both.args().to_vec();
            let Some(pairs) = named_sides(&args[at], k, row)? else { return Ok(None) };
            args[at] = pairs;
            let both = compose(&both.with_args(args)?, &build::rest(&before)?)?;
            build::view(Op::Zip, &both).map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns what gives the rows in an element another name for their length.
fn named(of: &Ty, k: &Size, row: &Size) -> Built {
    match of {
        Ty::Array(n, _) if n == k => Term::on(Op::PadLast, std::slice::from_ref(row), of, vec![]),
        Ty::Pair(a, b) => build::bimap(&named(a, k, row)?, &named(b, k, row)?),
        _ => Ok(Term::id(of)),
    }
}

/// Returns a function of an argument of another type, whose arrays have lengths with other names.
///
/// # Errors
/// If the function depends on the names.
fn retyped(f: &Term, dom: &Ty) -> Built {
    let mut done = Term::id(dom);
    for f in f.chain().into_iter().rev() {
        let dom = done.ty().cod.clone();
        let f = match f.op() {
            _ if f.ty().dom == dom => f,
            _ if f.is_constant() => build::redomain(&f, &dom)?,
            Op::Map(MapKind::Plain) => {
                let (n, of) = elements(&dom)?;
                build::map(MapKind::Plain, &n, &retyped(&f.args()[0], &of)?)?
            }
            Op::Fork => build::fork(&retyped(&f.args()[0], &dom)?, &retyped(&f.args()[1], &dom)?)?,
            Op::Bimap => {
                let (a, b) = halves(&dom)?;
                build::bimap(&retyped(&f.args()[0], &a)?, &retyped(&f.args()[1], &b)?)?
            }
            op => Term::on(op.clone(), &[], &dom, f.args().to_vec())?,
        };
        done = compose(&f, &done)?;
    }
    Ok(done)
}
