//! Reductions of the same elements become one reduction of tuples (horizontal fusion, the "banana split"):
//! `fork (reduce min z . xs) (reduce max w . map abs . xs)` becomes `reduce (min, max) (z, w) . map (\x -> (x, abs x)) . xs`.
//!
//! Then the elements are read once, and one kernel takes the place of several. This is done once, before rewriting: as a
//! rule, it would double the forms of every fork in the e-graph.

use super::{build, sides};
use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, ReduceKind, Term, TypeError};
use crate::calculus::ty::Ty;

/// Returns the term with its reductions of the same elements fused.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn reductions_together(t: &Term) -> Result<Term, TypeError> {
    let mut done = vec![];
    for f in t.chain() {
        if *f.op() == Op::Fork && f.ty().cod.is_scalar() {
            done.extend(fused(&f)?.chain());
            continue;
        }
        done.push(build::each_arg(&f, reductions_together)?);
    }
    Term::of_chain(&done)
}

/// Fuses the reductions in a tree of forks that gives scalars.
fn fused(fork: &Term) -> Result<Term, TypeError> {
    let mut leaves = vec![];
    flatten(fork, &mut leaves);
    let leaves = leaves.iter().map(reductions_together).collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<Option<Reduction>> = leaves.iter().map(Reduction::of).collect();
    let Some(group) = (0..leaves.len()).map(|i| alike(&parts, i)).find(|g| g.len() > 1) else {
        return again(fork, &mut leaves.into_iter());
    };
    let members: Vec<&Reduction> = group.iter().filter_map(|k| parts[*k].as_ref()).collect();
    let one = together(&members)?;
    let others: Vec<Term> =
        (0..leaves.len()).filter(|k| !group.contains(k)).map(|k| leaves[k].clone()).collect();
    // The results as they stand in the new fork: those of the group, then the others.
    let mut place = vec![SExpr::Arg; leaves.len()];
    let (first, rest) = match others.is_empty() {
        true => (SExpr::Arg, SExpr::Arg),
        false => (SExpr::Arg.proj(false), SExpr::Arg.proj(true)),
    };
    for (k, at) in group.iter().zip(0..) {
        place[*k] = members[at].after.at(&component(&first, at, group.len()));
    }
    for (k, at) in (0..leaves.len()).filter(|k| !group.contains(k)).zip(0..) {
        place[k] = component(&rest, at, others.len());
    }
    let all = match nest(&others, &build::fork)? {
        Some(others) => build::fork(&one, &others)?,
        None => one,
    };
    let body = arranged(fork, &mut place.into_iter());
    let arrange = ScalarFn { dom: all.ty().cod.clone(), cod: fork.ty().cod.clone(), body };
    let all = reductions_together(&all)?;
    if arrange.body == SExpr::Arg { Ok(all) } else { Term::scalar(arrange).after(&all) }
}

/// Returns the reductions that read elements which the `i`th one reads, or another one of the result, in order.
fn alike(parts: &[Option<Reduction>], i: usize) -> Vec<usize> {
    let mut group = vec![i];
    let shares = |a: usize, b: usize| match (&parts[a], &parts[b]) {
        (Some(a), Some(b)) => a.shares(b),
        _ => false,
    };
    let mut seen = 0;
    while seen < group.len() {
        let others = (0..parts.len()).filter(|k| !group.contains(k) && shares(*k, group[seen]));
        let more: Vec<usize> = others.collect();
        group.extend(more);
        seen += 1;
    }
    group.sort_unstable();
    group
}

/// Adds the leaves of a tree of forks, from left to right.
fn flatten(t: &Term, out: &mut Vec<Term>) {
    match (t.op(), t.args()) {
        (Op::Fork, [a, b]) => {
            flatten(a, out);
            flatten(b, out);
        }
        _ => out.push(t.clone()),
    }
}

/// Returns the tree with other leaves.
fn again(t: &Term, leaves: &mut dyn Iterator<Item = Term>) -> Result<Term, TypeError> {
    match (t.op(), t.args()) {
        (Op::Fork, [a, b]) => {
            let a = again(a, leaves)?;
            Term::new(Op::Fork, vec![], vec![], vec![a, again(b, leaves)?])
        }
        _ => Ok(leaves.next().unwrap_or_else(|| t.clone())),
    }
}

/// Returns the leaves' values in the arrangement of the tree.
fn arranged(t: &Term, values: &mut dyn Iterator<Item = SExpr>) -> SExpr {
    match (t.op(), t.args()) {
        (Op::Fork, [a, b]) => {
            let a = arranged(a, values);
            SExpr::joined(a, arranged(b, values))
        }
        _ => values.next().unwrap_or(SExpr::Arg),
    }
}

/// Joins terms from the right by a constructor: `[a, b, c]` becomes `join a (join b c)`.
fn nest(
    ts: &[Term],
    join: &dyn Fn(&Term, &Term) -> Result<Term, TypeError>,
) -> Result<Option<Term>, TypeError> {
    let Some((last, before)) = ts.split_last() else { return Ok(None) };
    before.iter().rev().try_fold(last.clone(), |rest, t| join(t, &rest)).map(Some)
}

/// Returns component `k` of the `n` components of a value that [`nest`] built.
fn component(of: &SExpr, k: usize, n: usize) -> SExpr {
    let tail = (0..k).fold(of.clone(), |e, _| e.proj(true));
    if k + 1 < n { tail.proj(false) } else { tail }
}

/// `after . reduce op unit . map element . sources`, where the arrays of the sources are zipped.
struct Reduction {
    after: SExpr,
    op: ScalarFn,
    commutes: bool,
    unit: SExpr,
    length: Size,
    /// The value that is reduced, over one array of elements for each source.
    element: Element,
}

/// A function of elements of arrays.
struct Element {
    /// The arrays: terms that give arrays of scalars.
    arrays: Vec<Term>,
    /// The value, over a nest of the arrays' elements.
    value: Value,
}

/// An expression over the elements of one array, or a pair or a function of such.
enum Value {
    Of(usize),
    Pair(Box<Value>, Box<Value>),
    Applied(SExpr, Box<Value>),
}

impl Value {
    /// Returns the value, given the element of each array.
    fn over(&self, elements: &dyn Fn(usize) -> SExpr) -> SExpr {
        match self {
            Value::Of(k) => elements(*k),
            Value::Pair(a, b) => SExpr::joined(a.over(elements), b.over(elements)),
            Value::Applied(f, x) => f.at(&x.over(elements)),
        }
    }
}

impl Element {
    /// Returns what a term that gives an array of scalars computes for each element.
    fn of(t: &Term) -> Option<Element> {
        let mut arrays = vec![];
        let value = read(&t.chain(), &mut arrays)?;
        Some(Element { arrays, value })
    }
}

/// Returns the value of an element of a chain, whose outermost factor comes first. Adds the arrays that it reads.
fn read(chain: &[Term], arrays: &mut Vec<Term>) -> Option<Value> {
    match chain {
        [map, rest @ ..] if *map.op() == Op::Map(MapKind::Plain) => {
            let functions = map.args()[0].chain();
            let mut value = match rest {
                [] => read(&[Term::id(&map.ty().dom)], arrays)?,
                rest => read(rest, arrays)?,
            };
            for f in functions.iter().rev() {
                let Op::Scalar(f) = f.op() else { return None };
                value = Value::Applied(f.body.clone(), Box::new(value));
            }
            Some(value)
        }
        [zip, pair] if *zip.op() == Op::Zip && matches!(pair.op(), Op::Fork | Op::Bimap) => {
            let first = read(&sides::component(pair, false).ok()?.chain(), arrays)?;
            let second = read(&sides::component(pair, true).ok()?.chain(), arrays)?;
            Some(Value::Pair(Box::new(first), Box::new(second)))
        }
        _ => {
            let array = Term::of_chain(chain).ok()?;
            let (_, element) = build::elements(&array.ty().cod).ok()?;
            if !element.is_scalar() {
                return None;
            }
            let known = arrays.iter().position(|a| *a == array);
            Some(Value::Of(known.unwrap_or_else(|| {
                arrays.push(array);
                arrays.len() - 1
            })))
        }
    }
}

impl Reduction {
    fn of(t: &Term) -> Option<Reduction> {
        let chain = t.chain();
        let at = chain.iter().position(|f| matches!(f.op(), Op::Reduce(_)))?;
        let kind = match chain[at].op() {
            Op::Reduce(k @ (ReduceKind::Assoc | ReduceKind::Comm)) => *k,
            _ => return None,
        };
        let after = chain[..at].iter().rev().try_fold(SExpr::Arg, |x, f| match f.op() {
            Op::Scalar(f) => Some(f.body.at(&x)),
            _ => None,
        })?;
        let [op, unit] = chain[at].args() else { return None };
        let Op::Scalar(op) = op.op() else { return None };
        let unit = match unit.op() {
            Op::Scalar(f) if f.dom == Ty::Unit => f.body.clone(),
            Op::Lit(l) => SExpr::Lit(*l),
            _ => return None,
        };
        let source = match &chain[at + 1..] {
            [] => Term::id(&chain[at].ty().dom),
            factors => Term::of_chain(factors).ok()?,
        };
        let (length, _) = build::elements(&source.ty().cod).ok()?;
        Some(Reduction {
            after,
            op: (**op).clone(),
            commutes: kind == ReduceKind::Comm || op.is_commutative(),
            unit,
            length,
            element: Element::of(&source)?,
        })
    }

    /// Whether both read an array of data of the same length.
    fn shares(&self, other: &Reduction) -> bool {
        let counted = |t: &Term| {
            let mut inputs = false;
            t.visit(&mut |t| inputs |= matches!(t.op(), Op::Input(_)));
            !inputs && t.is_constant()
        };
        let common = |a: &Term| other.element.arrays.contains(a) && !counted(a);
        self.length == other.length && self.element.arrays.iter().any(common)
    }
}

/// Returns the reduction that gives the results of all, before their functions `after` are applied, in a nest.
fn together(parts: &[&Reduction]) -> Result<Term, TypeError> {
    let mut arrays: Vec<Term> = vec![];
    for a in parts.iter().flat_map(|r| &r.element.arrays) {
        if !arrays.contains(a) {
            arrays.push(a.clone());
        }
    }
    let position = |a: &Term| arrays.iter().position(|b| b == a).unwrap_or(0);
    let n = parts.len();
    let elements = parts.iter().map(|r| {
        let element =
            |k: usize| component(&SExpr::Arg, position(&r.element.arrays[k]), arrays.len());
        r.element.value.over(&element)
    });
    let element = joined(elements.collect());
    let ops = parts.iter().enumerate().map(|(k, r)| {
        let of = |second: bool| component(&SExpr::Arg.proj(second), k, n);
        r.op.body.at(&SExpr::pair(of(false), of(true)))
    });
    let op = joined(ops.collect());
    let unit = joined(parts.iter().map(|r| r.unit.clone()).collect());
    let Some(ty) = parts.iter().rev().fold(None, |rest: Option<Ty>, r| {
        let this = &r.op.cod;
        Some(rest.map_or_else(|| this.clone(), |rest| Ty::pair(this, &rest)))
    }) else {
        return Err(TypeError("no reductions".to_owned()));
    };
    let zipped = |a: &Term, b: &Term| build::view(Op::Zip, &build::fork(a, b)?);
    let Some(source) = nest(&arrays, &zipped)? else {
        return Err(TypeError("a reduction of no array".to_owned()));
    };
    let (length, dom) = build::elements(&source.ty().cod)?;
    let source = match element {
        SExpr::Arg => source,
        body => {
            let f = Term::scalar(ScalarFn { dom, cod: ty.clone(), body });
            build::compose(&build::map(MapKind::Plain, &length, &f)?, &source)?
        }
    };
    let op = Term::scalar(ScalarFn { dom: Ty::pair(&ty, &ty), cod: ty.clone(), body: op });
    let unit = Term::scalar(ScalarFn { dom: Ty::Unit, cod: ty, body: unit });
    let commutes = parts.iter().all(|r| r.commutes);
    let kind = if commutes { ReduceKind::Comm } else { ReduceKind::Assoc };
    build::apply(Op::Reduce(kind), &[], vec![op, unit], &source)
}

/// Returns the values in a nest.
fn joined(values: Vec<SExpr>) -> SExpr {
    let mut from_right = values.into_iter().rev();
    let last = from_right.next().unwrap_or(SExpr::Arg);
    from_right.fold(last, |rest, v| SExpr::joined(v, rest))
}
