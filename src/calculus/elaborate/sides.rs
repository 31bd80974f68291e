//! Arranges the arrays of a zip by the component of the pair that they are taken from.
//!
//! An element of a product is a function of the rows of a pair: `map f . zip . bimap p q`. But programs take several arrays
//! from both components, in any order: `map4 (\\a b c d -> a * b + c * d) x[i] y[j] y[i] x[j]`. The arrays of the first
//! component become one array of tuples, those of the second another one, and the function takes its arguments from there.

use super::build;
use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// What a map is applied to, element by element.
enum Tree {
    /// An array that is taken from one component of the pair, the second one if true.
    Array(bool, Term),
    Pair(Box<Tree>, Box<Tree>),
    /// A function of the elements of both components.
    Applied(SExpr, Box<Tree>),
}

/// Returns `map f . zip . x` as its map and what is zipped, `map g . zip . bimap p q`, if all arrays that `x` zips are
/// taken from one component of a pair. `map` follows the chain, whose last factors are `x` and `zip`.
pub(super) fn in_order(map: &Term, chain: &[Term]) -> Result<Option<(Term, Term)>, TypeError> {
    let [.., pair, zip] = chain else { return Ok(None) };
    if *map.op() != Op::Map(MapKind::Plain) || *zip.op() != Op::Zip {
        return Ok(None);
    }
    let factors = map.args()[0].chain();
    let Some((Op::Scalar(f), users)) = factors.split_last().map(|(f, users)| (f.op(), users))
    else {
        return Ok(None);
    };
    let Some(tree) = of(&zip.after(pair)?)? else { return Ok(None) };
    if let Tree::Pair(a, b) = &tree
        && let (Tree::Array(false, _), Tree::Array(true, _)) = (&**a, &**b)
    {
        return Ok(None);
    }
    let (mut first, mut second) = (vec![], vec![]);
    tree.arrays(&mut first, &mut second);
    let (Some(p), Some(q)) = (zipped(&first)?, zipped(&second)?) else { return Ok(None) };
    let fork = build::fork(&p, &q)?;
    let place = |from: bool, array: &Term| {
        let arrays = if from { &second } else { &first };
        let k = arrays.iter().position(|a| a == array).unwrap_or(0);
        let tail = (0..k).fold(SExpr::Arg.proj(from), |e, _| e.proj(true));
        if k + 1 < arrays.len() { tail.proj(false) } else { tail }
    };
    let body = f.body.at(&tree.value(&place));
    let (_, a) = build::elements(&p.ty().cod)?;
    let (_, b) = build::elements(&q.ty().cod)?;
    let f = ScalarFn { dom: Ty::pair(&a, &b), cod: f.cod.clone(), body };
    let f = Term::of_chain(&[users, &[Term::scalar(f)]].concat())?;
    Ok(Some((build::map(MapKind::Plain, &map.sizes()[0], &f)?, fork)))
}

impl Tree {
    /// Adds the arrays of each component, each once.
    fn arrays(&self, first: &mut Vec<Term>, second: &mut Vec<Term>) {
        match self {
            Tree::Array(from, t) => {
                let arrays = if *from { second } else { first };
                if !arrays.contains(t) {
                    arrays.push(t.clone());
                }
            }
            Tree::Pair(a, b) => {
                a.arrays(first, second);
                b.arrays(first, second);
            }
            Tree::Applied(_, x) => x.arrays(first, second),
        }
    }

    /// Returns the value of an element, given those of the arrays.
    fn value(&self, place: &dyn Fn(bool, &Term) -> SExpr) -> SExpr {
        match self {
            Tree::Array(from, t) => place(*from, t),
            Tree::Pair(a, b) => SExpr::joined(a.value(place), b.value(place)),
            Tree::Applied(f, x) => f.at(&x.value(place)),
        }
    }
}

/// Returns the arrays that a term zips, and the functions of their elements; `None` if one of them is taken from both
/// components, or from none.
fn of(t: &Term) -> Result<Option<Tree>, TypeError> {
    if t.is_constant() {
        return Ok(None);
    }
    for from in [false, true] {
        if build::factor(t, from)?.is_some() {
            return Ok(Some(Tree::Array(from, t.clone())));
        }
    }
    let chain = t.chain();
    let rest = match &chain[1..] {
        [] => Term::id(&t.ty().dom),
        rest => Term::of_chain(rest)?,
    };
    match chain[0].op() {
        Op::Zip => {
            let (a, b) = (of(&component(&rest, false)?)?, of(&component(&rest, true)?)?);
            Ok(a.zip(b).map(|(a, b)| Tree::Pair(Box::new(a), Box::new(b))))
        }
        Op::Map(MapKind::Plain) => {
            let mut value = SExpr::Arg;
            for f in chain[0].args()[0].chain().iter().rev() {
                let Op::Scalar(f) = f.op() else { return Ok(None) };
                value = f.body.at(&value);
            }
            Ok(of(&rest)?.map(|x| Tree::Applied(value, Box::new(x))))
        }
        _ => Ok(None),
    }
}

/// Returns a component of a term that gives a pair.
pub(super) fn component(t: &Term, second: bool) -> Result<Term, TypeError> {
    let chain = t.chain();
    let (f, rest) = (&chain[0], &chain[1..]);
    let side = |t: &Ty| Term::on(if second { Op::Snd } else { Op::Fst }, &[], t, vec![]);
    let of = match f.op() {
        Op::Fork => f.args()[usize::from(second)].clone(),
        Op::Bimap => build::compose(&f.args()[usize::from(second)], &side(&f.ty().dom)?)?,
        _ => build::compose(&side(&f.ty().cod)?, f)?,
    };
    rest.iter().try_fold(of, |of, g| build::compose(&of, g))
}

/// Zips arrays from the right: `zip a (zip b c)`.
fn zipped(arrays: &[Term]) -> Result<Option<Term>, TypeError> {
    let Some((last, before)) = arrays.split_last() else { return Ok(None) };
    let zip = |rest: Term, a: &Term| build::view(Op::Zip, &build::fork(a, &rest)?);
    before.iter().rev().try_fold(last.clone(), zip).map(Some)
}
