//! Products whose rows are used further become products of their own: `map (f . map e) . cross` becomes
//! `map f . map (map e) . cross`, if `e` reduces rows and `f` reduces what `e` gives. Likewise, a product of a row and the
//! rows of a matrix that is the same for all rows leaves its map: `map (f . fork g (map e . distl . fork p m))` becomes
//! `map f . zip . fork (map g) (map (map e) . cross . fork (map p) m)`.
//!
//! The product then has the tiles of a product, and its results are stored between two kernels. Which of the two is faster
//! depends on how long the rows are. So this is a second form, and the cost model decides.

use super::build;
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Fewest operations of one result, and fewest results, for which a product of its own may pay.
const ROW: u64 = 16;
const RESULTS: u64 = 1 << 16;

/// Returns the term with its products apart; `None` if there are none that are used further.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn products_apart(t: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let mut done = Term::id(&t.ty().dom);
    let mut any = false;
    for f in t.chain().into_iter().rev() {
        let parts = match f.op() {
            Op::Map(MapKind::Plain) => cut(&f, env)?,
            // Several results have products of their own.
            Op::Fork | Op::Bimap => {
                let args = f.args().iter().map(|a| products_apart(a, env));
                let args = args.collect::<Result<Vec<_>, _>>()?;
                let changed = args.iter().any(Option::is_some);
                let whole = args
                    .into_iter()
                    .zip(f.args())
                    .map(|(new, old)| new.unwrap_or_else(|| old.clone()));
                changed.then(|| f.with_args(whole.collect())).transpose()?
            }
            _ => None,
        };
        any |= parts.is_some();
        done = build::compose(&parts.unwrap_or(f), &done)?;
    }
    Ok(any.then_some(done))
}

/// Returns a map as two, the inner one a product.
fn cut(f: &Term, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let n = &f.sizes()[0];
    let chain = f.args()[0].chain();
    let each = |part: &[Term]| match part {
        [] => Ok(None),
        part => build::map(MapKind::Plain, n, &Term::of_chain(part)?).map(Some),
    };
    for (k, factor) in chain.iter().enumerate().skip(1) {
        let (users, rest) = (&chain[..k], &chain[k + 1..]);
        if !users.iter().any(build::reduces) {
            continue;
        }
        let product = match (factor.op(), factor.args()) {
            (Op::Map(MapKind::Plain), _) if is_heavy(factor, n, env) => product(n, &chain[k..])?,
            (Op::Fork, [a, b]) => {
                let of = |p: &Term| match is_heavy(&p.chain()[0], n, env) {
                    true => product(n, &[p.chain(), rest.to_vec()].concat()),
                    false => Ok(None),
                };
                let (first, second) = (of(a)?, of(b)?);
                if first.is_none() && second.is_none() {
                    continue;
                }
                let other = |p: &Term| {
                    build::map(
                        MapKind::Plain,
                        n,
                        &Term::of_chain(&[&p.chain()[..], rest].concat())?,
                    )
                };
                let side = |new: Option<Term>, p: &Term| new.map_or_else(|| other(p), Ok);
                let both = build::fork(&side(first, a)?, &side(second, b)?)?;
                Some(build::view(Op::Zip, &both)?)
            }
            _ => None,
        };
        if let (Some(product), Some(users)) = (product, each(users)?) {
            return build::compose(&users, &product).map(Some);
        }
    }
    Ok(None)
}

/// Returns the map over `n` rows of `map e . views`: of all pairs of rows, if the row meets the rows of a matrix.
fn product(n: &Size, chain: &[Term]) -> Result<Option<Term>, TypeError> {
    let [each, rest @ ..] = chain else { return Ok(None) };
    let pairs = match rest {
        [distl, fork, rest @ ..] if *distl.op() == Op::Distl && *fork.op() == Op::Fork => {
            let (row, matrix) = (&fork.args()[0], &fork.args()[1]);
            if !build::is_const(matrix) {
                return Ok(None);
            }
            let row = Term::of_chain(&[&row.chain()[..], rest].concat())?;
            let rows = build::map(MapKind::Plain, n, &row)?;
            let matrix = build::redomain(matrix, &rows.ty().dom)?;
            build::view(Op::Cross, &build::fork(&rows, &matrix)?)?
        }
        [] => Term::id(&Ty::array(n, &each.ty().dom)),
        rest => build::map(MapKind::Plain, n, &Term::of_chain(rest)?)?,
    };
    build::compose(&build::map(MapKind::Plain, n, each)?, &pairs).map(Some)
}

/// Whether a map over each of `n` rows reduces long rows, and gives many results.
fn is_heavy(map: &Term, n: &Size, env: &SizeEnv) -> bool {
    if *map.op() != Op::Map(MapKind::Plain) {
        return false;
    }
    let results = n.mul(&map.sizes()[0]).eval(env).unwrap_or(0);
    let mut longest = 0;
    map.visit(&mut |t| {
        if let Op::Reduce(_) = t.op() {
            longest = longest.max(t.sizes()[0].eval(env).unwrap_or(0));
        }
    });
    longest >= ROW && results >= RESULTS
}
