//! Long products in parts: the same program with the reductions of a small product cut along the rows.
//! `map (map (reduce op z . map f . zip)) . cross` becomes
//! `map (map (reduce op z)) . map transpose . transpose . map (map (map (reduce op z . map f . zip)) . cross) . zip .
//! bimap parts parts`, with `parts = transpose . map (split (k/p))`.
//!
//! The tiles of a product are shared out to work-groups. If the result has few tiles and its rows are long (a Gram matrix, a
//! covariance, the gradient of a layer), most of a device would stay idle. The batch of partial products has `p` times as
//! many tiles, and rules know batches of products. Where that may pay, both forms are inserted into the e-graph, as equals.
//!
//! Products with a few rows are turned (`turned_in_parts`): `map (map f) . cross` becomes `transpose . map (map (f . swap)) . cross . swap`.
//! A tile of matrix instructions has more rows than columns, so few rows fill less of it than few columns do.

use super::build::{self, Built};
use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::size::{Size, SizeEnv, Sym};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::lang::typed::ScalarOp;
use std::ops::RangeInclusive;

/// Results that are enough for a device: twice those of a product of matrices of 1024 rows.
const ENOUGH: u64 = 1 << 21;

/// The least length of a part: shorter parts would write more than they read.
const PART: u64 = 256;

/// The length from which on writing a part takes little time beside computing it. Parts of this length pay also if they only fill
/// the last round of work-groups: for up to eight times the results that are enough.
const LONG: u64 = 4096;

/// The fewest multiplications of a product in tiles.
pub(super) const TILED: u64 = 1 << 20;

/// Rows that are too few for the rows of a tile, and fewest partners for which that matters.
const FEW_ROWS: RangeInclusive<u64> = 2..=8;
const MANY: u64 = 32;

/// Returns the term with its long products in parts, if it has any. The number of parts and their length become dimensions of
/// their own, whose values are added to the environment.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn products_in_parts(t: &Term, env: &mut SizeEnv) -> Result<Option<Term>, TypeError> {
    let parted = within(t, 1, Change::Parts, env)?;
    Ok((parted != *t).then_some(parted))
}

/// As [`products_in_parts`], with the products of a few rows turned.
///
/// # Errors
/// As [`products_in_parts`].
pub(super) fn turned_in_parts(t: &Term, env: &mut SizeEnv) -> Result<Option<Term>, TypeError> {
    let turned = within(t, 1, Change::Turn, env)?;
    let parted = within(&turned, 1, Change::Parts, env)?;
    Ok((parted != *t).then_some(parted))
}

/// What is done with products.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// They are computed in parts.
    Parts,
    /// Their rows and columns are exchanged.
    Turn,
}

/// Changes the products in a term that is applied `outer` times.
fn within(t: &Term, outer: u64, change: Change, env: &mut SizeEnv) -> Built {
    let mut done = Term::id(&t.ty().dom);
    for f in t.chain().into_iter().rev() {
        if let Some((whole, before)) = with_its_views(&f, &done)? {
            let inner = within_map(&whole, outer, change, env)?;
            if inner != whole.args()[0] {
                done = build::compose(&one_batch(&whole.sizes()[0], &inner)?, &before)?;
                continue;
            }
        }
        let last = done.chain().swap_remove(0);
        let before = build::rest(&done)?;
        if *last.op() == Op::Zip
            && let Some((user, sides)) = beside(&f, outer, change, env)?
        {
            let both = within(&build::compose(&sides, &before)?, outer, change, env)?;
            done = build::compose(&user, &build::view(Op::Zip, &both)?)?;
            continue;
        }
        if *last.op() == Op::Cross
            && let Some(product) = product(&f, outer, change, env)
        {
            done = product.changed(change, env, &before)?;
            continue;
        }
        if *last.op() == Op::Cross
            && let Some(whole) = with_partner(&f)?
            && let Some(product) = product(&whole.pairs, outer, change, env)
        {
            let product = product.changed(change, env, &whole.sides)?;
            let crossed = build::view(Op::Cross, &Term::id(&before.ty().cod))?;
            let other = build::compose(&whole.other, &crossed)?;
            let both = build::view(Op::Zip, &build::fork(&product, &other)?)?;
            done = build::compose(&whole.user, &build::compose(&both, &before)?)?;
            continue;
        }
        let f = match f.op() {
            Op::Map(MapKind::Plain) => {
                let inner = within_map(&f, outer, change, env)?;
                match change {
                    Change::Parts if inner != f.args()[0] => one_batch(&f.sizes()[0], &inner)?,
                    _ => f.with_args(vec![inner])?,
                }
            }
            Op::Fork | Op::Bimap | Op::Fold | Op::While => {
                build::each_arg(&f, |a| within(a, outer, change, env))?
            }
            _ => f,
        };
        done = build::compose(&f, &done)?;
    }
    Ok(done)
}

/// Changes the products in the function of a map that is applied `outer` times.
fn within_map(map: &Term, outer: u64, change: Change, env: &mut SizeEnv) -> Built {
    let count = map.sizes()[0].eval(env).unwrap_or(u64::MAX).saturating_mul(outer);
    within(&map.args()[0], count, change, env)
}

/// If a map follows one that ends with `cross`, returns both as one map, and what comes before: a product needs its rows.
fn with_its_views(f: &Term, before: &Term) -> Result<Option<(Term, Term)>, TypeError> {
    let last = before.chain().swap_remove(0);
    let is_map = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    if !is_map(f) || !is_map(&last) || !pairs_rows(&last.args()[0]) {
        return Ok(None);
    }
    let both = build::compose(&f.args()[0], &last.args()[0])?;
    Ok(Some((build::map(MapKind::Plain, &f.sizes()[0], &both)?, build::rest(before)?)))
}

/// Whether a function ends with `cross`, also in the batches of a batch.
fn pairs_rows(f: &Term) -> bool {
    let last = f.chain().swap_remove(0);
    match last.op() {
        Op::Map(MapKind::Plain) => pairs_rows(&last.args()[0]),
        op => *op == Op::Cross,
    }
}

/// Returns the map over a dimension of a function that computes a product in parts. The parts of all products are one batch.
fn one_batch(n: &Size, inner: &Term) -> Built {
    let chain = inner.chain();
    let is_batch = |f: &Term| {
        let product = f.args().first().map(Term::chain).unwrap_or_default();
        *f.op() == Op::Map(MapKind::Plain)
            && product.last().is_some_and(|f| *f.op() == Op::Cross)
            && build::reduces(f)
    };
    let Some(at) = chain.iter().position(is_batch) else {
        // What is beside the product has a map of its own.
        let has_batch = |f: &Term| f.chain().iter().any(is_batch);
        let beside = |f: &Term| *f.op() == Op::Fork && f.args().iter().any(has_batch);
        return match chain.iter().position(beside) {
            Some(at) if chain[at + 1..].iter().all(Term::is_view) => {
                let all = Term::id(&Ty::array(n, &inner.ty().dom));
                let all = build::mapped(n, &chain[at + 1..], &all)?;
                let both = build::each_arg(&chain[at], |side| one_batch(n, side))?;
                let both = build::view(Op::Zip, &build::compose(&both, &all)?)?;
                build::mapped(n, &chain[..at], &both)
            }
            _ => build::map(MapKind::Plain, n, inner),
        };
    };
    let (parts, product) = (&chain[at].sizes()[0], &chain[at].args()[0]);
    let all = Term::id(&Ty::array(n, &inner.ty().dom));
    let all = build::view(Op::Join, &build::mapped(n, &chain[at + 1..], &all)?)?;
    let all = build::compose(&build::map(MapKind::Plain, &n.mul(parts), product)?, &all)?;
    let all = build::apply(Op::Split, std::slice::from_ref(parts), vec![], &all)?;
    build::mapped(n, &chain[..at], &all)
}

/// Returns `map (map h . zip)` and `bimap (map (map p)) (map (map q))` of `map (map (h . bimap p q) . zip)`, if `p` or `q` is the
/// function of a long product: what is beside the product is computed apart from it.
fn beside(
    f: &Term,
    outer: u64,
    change: Change,
    env: &SizeEnv,
) -> Result<Option<(Term, Term)>, TypeError> {
    let rows = match f.op() {
        Op::Map(MapKind::Plain) => f.args()[0].chain(),
        _ => return Ok(None),
    };
    let [map, zip] = rows.as_slice() else { return Ok(None) };
    if (map.op(), zip.op()) != (&Op::Map(MapKind::Plain), &Op::Zip) {
        return Ok(None);
    }
    let chain = map.args()[0].chain();
    let Some((sides, h)) = chain.split_last().filter(|(b, _)| *b.op() == Op::Bimap) else {
        return Ok(None);
    };
    let (n, m) = (&f.sizes()[0], &map.sizes()[0]);
    let nest = |f: &Term| build::map(MapKind::Plain, n, &build::map(MapKind::Plain, m, f)?);
    let (p, q) = (nest(&sides.args()[0])?, nest(&sides.args()[1])?);
    if product(&p, outer, change, env).is_none() && product(&q, outer, change, env).is_none() {
        return Ok(None);
    }
    let h = if h.is_empty() { Term::id(&sides.ty().cod) } else { Term::of_chain(h)? };
    let both = build::bimap(&p, &q)?;
    let (a, b) = build::halves(&both.ty().cod)?;
    let ((_, a), (_, b)) = (build::elements(&a)?, build::elements(&b)?);
    let row = Term::on(Op::Zip, &[], &Ty::pair(&a, &b), vec![])?;
    let user = build::compose(&build::map(MapKind::Plain, m, &h)?, &row)?;
    Ok(Some((build::map(MapKind::Plain, n, &user)?, both)))
}

/// The parts of `map (map (h . fork (r . bimap p q) g))`, where `r` reduces and `g` does not.
struct Partnered {
    /// `map (map h . zip)`
    user: Term,
    /// `map (map r)`
    pairs: Term,
    /// `bimap (map p) (map q)`
    sides: Term,
    /// `map (map g)`
    other: Term,
}

/// Takes a product apart from what else its function computes of a pair of rows, such as a factor of the row. `None` if there is no
/// such product.
fn with_partner(f: &Term) -> Result<Option<Partnered>, TypeError> {
    let is_map = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    if !is_map(f) || !is_map(&f.args()[0]) {
        return Ok(None);
    }
    let (n, m) = (&f.sizes()[0], &f.args()[0].sizes()[0]);
    let chain = f.args()[0].args()[0].chain();
    let Some((fork, h)) = chain.split_last().filter(|(f, _)| *f.op() == Op::Fork) else {
        return Ok(None);
    };
    let [first, second] = [0, 1].map(|k| build::reduces(&fork.args()[k]));
    if first == second {
        return Ok(None);
    }
    let (product, other) = (&fork.args()[usize::from(second)], &fork.args()[usize::from(first)]);
    let each = |n: &Size, f: &Term| build::map(MapKind::Plain, n, f);
    let factors = product.chain();
    let (rows, (p, q)) = match factors.split_last() {
        Some((sides, rows)) if *sides.op() == Op::Bimap && !rows.is_empty() => {
            (Term::of_chain(rows)?, (sides.args()[0].clone(), sides.args()[1].clone()))
        }
        _ => {
            let (a, b) = build::halves(&product.ty().dom)?;
            (product.clone(), (Term::id(&a), Term::id(&b)))
        }
    };
    let pair = Ty::pair(&rows.ty().cod, &other.ty().cod);
    // The function takes the pair in the order of the program.
    let ordered = match second {
        false => Term::id(&pair),
        true => build::fork(&build::proj(&pair, true)?, &build::proj(&pair, false)?)?,
    };
    let h = h.iter().rev().try_fold(ordered, |done, f| build::compose(f, &done))?;
    let row = Ty::pair(&Ty::array(m, &rows.ty().cod), &Ty::array(m, &other.ty().cod));
    let user = build::compose(&each(m, &h)?, &Term::on(Op::Zip, &[], &row, vec![])?)?;
    let nest = |f: &Term| each(n, &each(m, f)?);
    Ok(Some(Partnered {
        user: each(n, &user)?,
        pairs: nest(&rows)?,
        sides: build::bimap(&each(n, &p)?, &each(m, &q)?)?,
        other: nest(other)?,
    }))
}

/// A product of `n` and `m` rows of length `k` that is to be changed.
struct Product {
    n: Size,
    m: Size,
    k: Size,
    /// The value of `k`.
    length: u64,
    /// Number of parts, which divides the length; 1 if it is not computed in parts.
    parts: u64,
    /// What follows the reduction of each pair of rows.
    after: Vec<Term>,
    reduce: Term,
    /// What comes before the reduction: `zip` and functions of pairs.
    pairs: Vec<Term>,
}

/// Returns the product in `map (map f)`, which follows a `cross`, if the change may pay: for parts, if its results are few and its
/// rows are long.
fn product(f: &Term, outer: u64, change: Change, env: &SizeEnv) -> Option<Product> {
    let is_map = |t: &Term| *t.op() == Op::Map(MapKind::Plain);
    let inner = f.args().first().filter(|inner| is_map(f) && is_map(inner))?;
    let chain = inner.args()[0].chain();
    let at = chain.iter().position(build::is_associative)?;
    let (after, pairs) = (&chain[..at], &chain[at + 1..]);
    let elementwise = |f: &Term| *f.op() == Op::Map(MapKind::Plain) && !build::reduces(f);
    let (zip, maps) = pairs.split_last()?;
    if *zip.op() != Op::Zip || !maps.iter().all(elementwise) || after.iter().any(build::reduces) {
        return None;
    }
    let (n, m, k) = (f.sizes()[0].clone(), inner.sizes()[0].clone(), chain[at].sizes()[0].clone());
    let value = |s: &Size| s.eval(env).ok();
    let results = value(&n)?.checked_mul(value(&m)?)?.checked_mul(outer)?.max(1);
    let length = value(&k)?;
    let (few, long) =
        ((ENOUGH / results).min(length / PART), (8 * ENOUGH / results).min(length / LONG));
    // Two or three short parts are not worth a second kernel.
    let least = if long > 1 { 2 } else { 4 };
    let parts = match change {
        Change::Parts => (least..=few.max(long)).rev().find(|p| length.is_multiple_of(*p))?,
        Change::Turn => {
            let few = FEW_ROWS.contains(&value(&n)?) && value(&m)? >= MANY;
            (few && results.saturating_mul(length) >= TILED).then_some(1)?
        }
    };
    Some(Product {
        n,
        m,
        k,
        length,
        parts,
        after: after.to_vec(),
        reduce: chain[at].clone(),
        pairs: pairs.to_vec(),
    })
}

impl Product {
    /// Builds the changed product of what `before` gives.
    fn changed(&self, change: Change, env: &mut SizeEnv, before: &Term) -> Built {
        match change {
            Change::Parts => self.in_parts(env, before),
            Change::Turn => self.turned(before),
        }
    }

    /// Returns what computes one result from a pair of rows of another length, `crossed` deep in its type. Leaves out what
    /// follows the reduction.
    fn of_rows(&self, crossed: &Term) -> Built {
        let mut out = Term::id(&element(crossed, 2)?);
        for f in self.pairs.iter().rev().chain([&self.reduce]) {
            out = build::apply(f.op().clone(), &[], f.args().to_vec(), &out)?;
        }
        Ok(out)
    }

    /// Builds the product of what `before` gives with its sides exchanged. A function of pairs that is no leaf takes them as they were.
    fn turned(&self, before: &Term) -> Built {
        let each = |n: &Size, f: &Term| build::map(MapKind::Plain, n, f);
        let swap = |pair: &Ty| -> Built {
            build::fork(&build::proj(pair, true)?, &build::proj(pair, false)?)
        };
        let sides = build::compose(&swap(&before.ty().cod)?, before)?;
        let crossed = build::view(Op::Cross, &sides)?;
        let mut pairs = self.pairs.clone();
        let leaf = pairs.iter_mut().rev().nth(1).and_then(|map| match map.args()[0].op() {
            Op::Scalar(f) => Some((Term::scalar(exchanged(f)), map)),
            _ => None,
        });
        let pair = element(&crossed, 2)?;
        let mut result = match leaf {
            Some((f, map)) => {
                *map = build::map(MapKind::Plain, &self.k, &f)?;
                Term::id(&pair)
            }
            None => swap(&pair)?,
        };
        for f in pairs.iter().rev().chain([&self.reduce]) {
            result = build::apply(f.op().clone(), &[], f.args().to_vec(), &result)?;
        }
        for f in self.after.iter().rev() {
            result = build::compose(f, &result)?;
        }
        let results = build::compose(&each(&self.m, &each(&self.n, &result)?)?, &crossed)?;
        build::view(Op::Transpose, &results)
    }

    /// Builds the product of what `before` gives, in parts. Their number and length are dimensions of their own, so that their
    /// tiles are not those of `k`.
    fn in_parts(&self, env: &mut SizeEnv, before: &Term) -> Built {
        let parts = dimension(&self.k, "parts", self.parts, env);
        let part = dimension(&self.k, "part", self.length / self.parts, env);
        let whole = part.mul(&parts);
        let each = |n: &Size, f: &Term| build::map(MapKind::Plain, n, f);
        // Padding tells the calculus that the parts have the length of a row; it adds no elements.
        let cut = |rows: &Size, side: &Ty| -> Built {
            let (_, row) = build::elements(side)?;
            let row = Term::on(Op::PadLast, std::slice::from_ref(&whole), &row, vec![])?;
            let row = build::apply(Op::Split, std::slice::from_ref(&part), vec![], &row)?;
            build::view(Op::Transpose, &each(rows, &row)?)
        };
        let (a, b) = build::halves(&before.ty().cod)?;
        let sides = build::view(Op::Zip, &build::bimap(&cut(&self.n, &a)?, &cut(&self.m, &b)?)?)?;
        let crossed = Term::on(Op::Cross, &[], &element(&sides, 1)?, vec![])?;
        let partial = self.of_rows(&crossed)?;
        let product = build::compose(&each(&self.n, &each(&self.m, &partial)?)?, &crossed)?;
        let batch = build::compose(&each(&parts, &product)?, &sides)?;
        let rows = build::view(Op::Transpose, &batch)?;
        let turn = Term::on(Op::Transpose, &[], &element(&rows, 1)?, vec![])?;
        let rows = build::compose(&each(&self.n, &turn)?, &rows)?;
        let (op, args) = (self.reduce.op().clone(), self.reduce.args().to_vec());
        let mut total = Term::on(op, &[], &element(&rows, 2)?, args)?;
        for f in self.after.iter().rev() {
            total = build::compose(f, &total)?;
        }
        let totals = build::compose(&each(&self.n, &each(&self.m, &total)?)?, &rows)?;
        build::compose(&totals, before)
    }
}

/// Returns a function of pairs whose components are exchanged. The operands of a sum or a product remain in the order of the pair.
fn exchanged(f: &ScalarFn) -> ScalarFn {
    let Ty::Pair(a, b) = &f.dom else { return f.clone() };
    let swap = ScalarFn {
        dom: Ty::pair(b, a),
        cod: f.dom.clone(),
        body: SExpr::pair(SExpr::Arg.proj(true), SExpr::Arg.proj(false)),
    };
    let mut out = f.after(&swap);
    if let SExpr::Op(ScalarOp::Add | ScalarOp::Mul, _, args) = &mut out.body {
        args.reverse();
    }
    out
}

/// Returns a dimension of its own with this value, named after `of`.
pub(super) fn dimension(of: &Size, name: &str, value: u64, env: &mut SizeEnv) -> Size {
    let name = match of.as_sym() {
        Some(Sym::Dim(base)) => format!("{base}_{name}"),
        _ => name.to_owned(),
    };
    let names = std::iter::once(name.clone()).chain((1..).map(|i| format!("{name}_{i}")));
    let mut dims = names.map(|name| Sym::Dim(name.into()));
    let free = |s: &Sym| env.get(s).is_none_or(|v| *v == value);
    let dim = dims.find(free).expect("invariant: there is always another name");
    env.insert(dim.clone(), value);
    Size::sym(dim)
}

/// Returns the type of what is `depth` arrays deep in the result of a term.
fn element(t: &Term, depth: usize) -> Result<Ty, TypeError> {
    (0..depth).try_fold(t.ty().cod.clone(), |ty, _| Ok(build::elements(&ty)?.1))
}
