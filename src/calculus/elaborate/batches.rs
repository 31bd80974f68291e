//! Batches of composed products: where a map computes a matrix from all pairs of rows and columns, and then meets its rows
//! with others, the map is cut in two (fission): `map (f . fork p q)` becomes
//! `map f . zip . fork (map p) (map q)`, if `p` or `q` computes such a matrix and `f` meets or reduces its rows. Likewise, `map (f . p)` becomes
//! `map f . map p` if `f` reduces the rows of the matrix.
//!
//! Each part is then a batch of products, with tiles of its own. Within one map, the first matrix would have to fit into the
//! memory of a work-group, or each of its elements would be computed again for every partner that it meets.

use super::build;
use crate::calculus::nesting::is_pure;
use crate::calculus::size::SizeEnv;
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// Elements of a matrix that is so small that a work-item or a group may hold it.
pub(super) const HELD: u64 = 1024;

/// Returns the term with its batches of composed products cut, where the matrix between the products is large.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn cut(t: &Term, env: &SizeEnv) -> Result<Term, TypeError> {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        let f = build::each_arg(&f, |a| cut(a, env))?;
        done = if let Some((user, fork, views)) = stages(&f, env) {
            after(&f, &user, &fork, &build::mapped(&f.sizes()[0], &views, &done)?, env)?
        } else if let Some((user, product)) = reduced_product(&f, env) {
            let each =
                |part: &[Term]| build::map(MapKind::Plain, &f.sizes()[0], &Term::of_chain(part)?);
            let product = build::compose(&cut(&each(&product)?, env)?, &done)?;
            build::compose(&each(&user)?, &product)?
        } else {
            build::compose(&f, &done)?
        };
    }
    Ok(done)
}

/// Returns `user` and `product` of `map (user . product)`, where the user reduces what the product computes.
fn reduced_product(f: &Term, env: &SizeEnv) -> Option<(Vec<Term>, Vec<Term>)> {
    if *f.op() != Op::Map(MapKind::Plain) {
        return None;
    }
    let chain = f.args()[0].chain();
    let cross = chain.iter().position(|f| *f.op() == Op::Cross)?;
    let (user, product) = chain.split_at(cross.checked_sub(1)?);
    let reduces = user.iter().any(build::reduces);
    let heavy = Term::of_chain(product).is_ok_and(|p| is_product(&p, env));
    (reduces && heavy).then(|| (user.to_vec(), product.to_vec()))
}

/// Returns `user`, `fork p q` and `views` of `map (user . fork p q . views)`, if the map is to be cut there.
fn stages(f: &Term, env: &SizeEnv) -> Option<(Vec<Term>, Term, Vec<Term>)> {
    if *f.op() != Op::Map(MapKind::Plain) {
        return None;
    }
    let chain = f.args()[0].chain();
    let heavy = |f: &Term| *f.op() == Op::Fork && f.args().iter().any(|p| is_product(p, env));
    let computed = |f: &Term| *f.op() == Op::Fork && !is_pure(f);
    let is_operand = |at: usize| {
        computed(&chain[at])
            && Term::of_chain(&chain[..at]).is_ok_and(|user| is_product(&user, env))
    };
    let at = chain
        .iter()
        .rposition(heavy)
        .or_else(|| (1..chain.len()).rev().find(|at| is_operand(*at)))?;
    let (user, views) = (&chain[..at], &chain[at + 1..]);
    let meets = |f: &Term| {
        let mut found = false;
        f.visit(&mut |f| found |= matches!(f.op(), Op::Cross | Op::Reduce(_)));
        found
    };
    let cuts = user.iter().any(meets) && views.iter().all(is_pure);
    cuts.then(|| (user.to_vec(), chain[at].clone(), views.to_vec()))
}

/// Whether a term computes a large matrix by reductions over all pairs of rows and columns.
fn is_product(t: &Term, env: &SizeEnv) -> bool {
    let is_matrix = match &t.ty().cod {
        Ty::Array(n, row) => match &**row {
            Ty::Array(m, _) => n.mul(m).eval(env).is_ok_and(|n| n > HELD),
            _ => false,
        },
        _ => false,
    };
    let (mut pairs, mut reduces) = (false, false);
    t.visit(&mut |t| {
        pairs |= *t.op() == Op::Cross;
        reduces |= matches!(t.op(), Op::Reduce(_));
    });
    is_matrix && pairs && reduces
}

/// `map user . zip . fork (map p) (map q) . before`, for `fork p q`.
fn after(
    map: &Term,
    user: &[Term],
    fork: &Term,
    before: &Term,
    env: &SizeEnv,
) -> Result<Term, TypeError> {
    let n = &map.sizes()[0];
    let side = |k: usize| {
        let each = cut(&build::map(MapKind::Plain, n, &fork.args()[k])?, env)?;
        build::compose(&each, before)
    };
    let both = Term::new(Op::Fork, vec![], vec![], vec![side(0)?, side(1)?])?;
    let zipped = build::view(Op::Zip, &both)?;
    let user = build::map(MapKind::Plain, n, &Term::of_chain(user)?)?;
    build::compose(&user, &zipped)
}
