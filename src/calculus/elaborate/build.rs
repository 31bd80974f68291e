//! Constructors that keep terms in normal form: projections cancel, identities and unused parts vanish, and
//! constants absorb what comes before them. The constructors never change the meaning of a term.
//!
//! A *constant* is a term whose result does not depend on its argument. Inputs, literals and sizes take any
//! domain; other constants start with one of these, or with `bang`.

use crate::calculus::scalar::{SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, ReduceKind, Term, TypeError};
use crate::calculus::ty::Ty;

pub(super) type Built = Result<Term, TypeError>;

fn fail<T>(text: String) -> Result<T, TypeError> {
    Err(TypeError(text))
}

/// Returns the components of a pair type.
pub(super) fn halves(t: &Ty) -> Result<(Ty, Ty), TypeError> {
    match t {
        Ty::Pair(a, b) => Ok(((**a).clone(), (**b).clone())),
        _ => fail(format!("`{t}` is not a pair")),
    }
}

/// Returns the length and element type of an array type.
pub(super) fn elements(t: &Ty) -> Result<(Size, Ty), TypeError> {
    match t {
        Ty::Array(n, t) => Ok((n.clone(), (**t).clone())),
        _ => fail(format!("`{t}` is not an array")),
    }
}

/// `A -> ()`.
pub(super) fn bang(t: &Ty) -> Built {
    match t {
        Ty::Unit => Ok(Term::id(&Ty::Unit)),
        _ => Term::new(Op::Bang, vec![], vec![t.clone()], vec![]),
    }
}

/// The projection of a pair type.
pub(super) fn proj(pair: &Ty, second: bool) -> Built {
    Term::on(if second { Op::Snd } else { Op::Fst }, &[], pair, vec![])
}

/// Returns a constant as a function from `dom`.
pub(super) fn redomain(t: &Term, dom: &Ty) -> Built {
    if t.ty().dom == *dom {
        return Ok(t.clone());
    }
    match t.op() {
        Op::Compose => t.args()[0].after(&redomain(&t.args()[1], dom)?),
        Op::Input(_) | Op::Lit(_) | Op::SizeValue(_) | Op::Iota => {
            let mut tys = t.tys().to_vec();
            tys[0] = dom.clone();
            Term::new(t.op().clone(), t.sizes().to_vec(), tys, vec![])
        }
        Op::Bang => bang(dom),
        Op::Fork | Op::Cond | Op::ToMem(_) if t.is_constant() => {
            let args = t.args().iter().map(|a| redomain(a, dom));
            let args = args.collect::<Result<Vec<_>, _>>()?;
            Term::new(t.op().clone(), vec![], vec![], args)
        }
        Op::Scalar(f) if !f.body.mentions_arg() => scalar_const(&f.cod, &f.body, dom),
        _ if t.ty().dom == Ty::Unit => t.after(&bang(dom)?),
        _ => fail(format!("`{}` is not constant", t.ty())),
    }
}

/// Returns a scalar constant: a leaf if the domain is scalar, else a leaf from unit after `bang`.
pub(super) fn scalar_const(cod: &Ty, body: &SExpr, dom: &Ty) -> Built {
    let leaf = |dom: &Ty| {
        Term::scalar(ScalarFn { dom: dom.clone(), cod: cod.clone(), body: body.clone() })
    };
    if dom.is_scalar() {
        return Ok(leaf(dom));
    }
    leaf(&Ty::Unit).after(&bang(dom)?)
}

/// Returns which components of its argument, a pair, a term may depend on.
fn reads(t: &Term) -> (bool, bool) {
    match t.op() {
        _ if t.is_constant() => (false, false),
        Op::Fst => (true, false),
        Op::Snd => (false, true),
        Op::Compose => reads(&t.args()[1]),
        Op::Fork => {
            let (a, b) = (reads(&t.args()[0]), reads(&t.args()[1]));
            (a.0 || b.0, a.1 || b.1)
        }
        _ => (true, true),
    }
}

/// Returns the `g` with `t = g . fst` (or `snd`), if `t` uses only that component.
pub(super) fn factor(t: &Term, second: bool) -> Result<Option<Term>, TypeError> {
    let Ty::Pair(a, b) = &t.ty().dom else {
        return Ok(None);
    };
    // Check this first, so that no term is rebuilt in vain.
    let (first_read, second_read) = reads(t);
    if if second { first_read } else { second_read } {
        return Ok(None);
    }
    strip(t, if second { b } else { a }).map(Some)
}

/// As [`factor`], for a term that is known to use only the component of type `side`.
fn strip(t: &Term, side: &Ty) -> Built {
    match t.op() {
        _ if t.is_constant() => redomain(t, side),
        Op::Fst | Op::Snd => Ok(Term::id(side)),
        Op::Compose => {
            let (last, rest) = (&t.args()[0], &t.args()[1]);
            let stripped = strip(rest, side)?;
            // The two were in normal form before, and only what begins with something else can meet anew. Building
            // them anew takes time exponential in the depth of forks.
            if *stripped.op() != Op::Id && head(&stripped).op() == head(rest).op() {
                return last.after(&stripped);
            }
            compose(last, &stripped)
        }
        Op::Fork => fork(&strip(&t.args()[0], side)?, &strip(&t.args()[1], side)?),
        _ => fail(format!("`{}` uses its whole argument", t.ty())),
    }
}

/// Returns the last step of a chain.
fn head(t: &Term) -> &Term {
    if *t.op() == Op::Compose { &t.args()[0] } else { t }
}

/// Builds `fork a b` in normal form: `fork fst snd = id`, `fork (f . fst) (g . snd) = bimap f g`, `fork (f .
/// fst) (g . fst) = fork f g . fst`. If one side is constant, the result stays a fork of the domain.
pub(super) fn fork(a: &Term, b: &Term) -> Built {
    let plain = || Term::new(Op::Fork, vec![], vec![], vec![a.clone(), b.clone()]);
    if a.is_constant() || b.is_constant() {
        return plain();
    }
    let dom = &a.ty().dom;
    for second in [false, true] {
        if let (Some(x), Some(y)) = (factor(a, second)?, factor(b, second)?) {
            return fork(&x, &y)?.after(&proj(dom, second)?);
        }
    }
    match (factor(a, false)?, factor(b, true)?) {
        (Some(x), Some(y)) => bimap(&x, &y),
        _ => plain(),
    }
}

/// Builds `bimap a b`, or the identity if both are.
pub(super) fn bimap(a: &Term, b: &Term) -> Built {
    if *a.op() == Op::Id && *b.op() == Op::Id {
        return Ok(Term::id(&Ty::pair(&a.ty().dom, &b.ty().dom)));
    }
    Term::new(Op::Bimap, vec![], vec![], vec![a.clone(), b.clone()])
}

/// Builds `map f` of the given kind; the plain map of the identity is the identity.
pub(super) fn map(kind: MapKind, n: &Size, f: &Term) -> Built {
    if kind == MapKind::Plain && *f.op() == Op::Id {
        return Ok(Term::id(&Ty::array(n, &f.ty().dom)));
    }
    Term::new(Op::Map(kind), vec![n.clone()], vec![], vec![f.clone()])
}

/// Builds the plain map of the composition of `factors`, of which there may be none, after a term.
pub(super) fn mapped(n: &Size, factors: &[Term], before: &Term) -> Built {
    if factors.is_empty() {
        return Ok(before.clone());
    }
    compose(&map(MapKind::Plain, n, &Term::of_chain(factors)?)?, before)
}

/// Applies the operator with these written sizes after a term.
pub(super) fn apply(op: Op, written: &[Size], args: Vec<Term>, f: &Term) -> Built {
    compose(&Term::on(op, written, &f.ty().cod, args)?, f)
}

/// Applies an operator without sizes and functions of its own after a term.
pub(super) fn view(op: Op, f: &Term) -> Built {
    apply(op, &[], vec![], f)
}

/// Builds a term with each of its functions changed.
pub(super) fn each_arg(f: &Term, change: impl FnMut(&Term) -> Built) -> Built {
    f.with_args(f.args().iter().map(change).collect::<Result<Vec<_>, _>>()?)
}

/// Builds a term with each of its factors changed.
pub(super) fn each_factor(t: &Term, mut change: impl FnMut(Term) -> Built) -> Built {
    let factors = t.chain().into_iter().rev();
    factors.into_iter().try_fold(Term::id(&t.ty().dom), |done, f| compose(&change(f)?, &done))
}

/// Builds `f . g` in normal form.
pub(super) fn compose(f: &Term, g: &Term) -> Built {
    if f.ty().dom != g.ty().cod {
        return fail(format!("`{}` after `{}`", f.ty(), g.ty()));
    }
    match (f.op(), g.op()) {
        (Op::Id, _) => return Ok(g.clone()),
        (_, Op::Id) => return Ok(f.clone()),
        _ => {}
    }
    // A constant absorbs what comes before it; a function from unit absorbs only `bang`.
    if f.is_constant() && (f.ty().dom != Ty::Unit || *g.op() == Op::Bang) {
        return redomain(f, &g.ty().dom);
    }
    if *f.op() == Op::Compose {
        let (last, before) = (&f.args()[0], &f.args()[1]);
        let composed = compose(before, g)?;
        // If the two did not meet, `last` follows the same step as in `f`, which is in normal form. It may meet only
        // a constant anew.
        if head(&composed) == head(before) && !g.is_constant() {
            return last.after(&composed);
        }
        return compose(last, &composed);
    }
    let (head, rest) = match g.op() {
        Op::Compose => (g.args()[0].clone(), Some(g.args()[1].clone())),
        _ => (g.clone(), None),
    };
    let before = |t: Term| match &rest {
        Some(r) => compose(&t, r),
        None => Ok(t),
    };
    match (f.op(), head.op()) {
        (Op::Fst, Op::Fork) => return before(head.args()[0].clone()),
        (Op::Snd, Op::Fork) => return before(head.args()[1].clone()),
        (Op::Fst | Op::Snd, Op::Bimap) => {
            let second = *f.op() == Op::Snd;
            let side = &head.args()[usize::from(second)];
            return before(compose(side, &proj(&head.ty().dom, second)?)?);
        }
        (Op::Bimap, Op::Fork) => {
            let a = compose(&f.args()[0], &head.args()[0])?;
            let b = compose(&f.args()[1], &head.args()[1])?;
            return before(fork(&a, &b)?);
        }
        (Op::Bimap, Op::Bimap) => {
            let a = compose(&f.args()[0], &head.args()[0])?;
            let b = compose(&f.args()[1], &head.args()[1])?;
            return before(bimap(&a, &b)?);
        }
        (Op::Unzip, Op::Zip) | (Op::Zip, Op::Unzip) | (Op::Transpose, Op::Transpose) => {
            return rest.map_or_else(|| Ok(Term::id(&head.ty().dom)), Ok);
        }
        (Op::Map(MapKind::Plain), Op::Zip) => {
            for second in [false, true] {
                if f.args()[0].is_constant() {
                    break;
                }
                if let Some(inner) = factor(&f.args()[0], second)? {
                    let mapped = map(MapKind::Plain, &f.sizes()[0], &inner)?;
                    return before(compose(&mapped, &proj(&head.ty().dom, second)?)?);
                }
            }
        }
        (Op::Fork, _) => {
            if let Some(pushed) = pushed(f, g)? {
                return Ok(pushed);
            }
        }
        _ => {}
    }
    f.after(g)
}

/// Returns a chain without its last step.
pub(super) fn rest(t: &Term) -> Built {
    match &t.chain()[1..] {
        [] => Ok(Term::id(&t.ty().dom)),
        rest => Term::of_chain(rest),
    }
}

/// Returns `fork a b . g` as `fork (a . g) (b . g)`, if that computes nothing twice or is no larger.
fn pushed(f: &Term, g: &Term) -> Result<Option<Term>, TypeError> {
    let (a, b) = (&f.args()[0], &f.args()[1]);
    let shared = !a.is_constant() && !b.is_constant();
    let views = g.chain().iter().all(is_cheap);
    if shared && !(views && g.is_constant()) && matches!(g.op(), Op::Fst | Op::Snd) {
        return Ok(None);
    }
    let out = fork(&compose(a, g)?, &compose(b, g)?)?;
    let no_larger = || {
        out.size() <= f.size() + g.size() + 1 && out.reductions() <= f.reductions() + g.reductions()
    };
    let fine = !shared || views && g.is_constant() || no_larger();
    Ok(fine.then_some(out))
}

fn is_cheap(t: &Term) -> bool {
    match t.op() {
        Op::Fork | Op::Bimap => t.args().iter().all(|a| a.chain().iter().all(is_cheap)),
        op => op.is_view(),
    }
}

/// Whether a term contains a reduction, a scan, or what else goes through an array.
pub(super) fn reduces(t: &Term) -> bool {
    let mut found = false;
    t.visit(&mut |t| {
        found |= matches!(
            t.op(),
            Op::Reduce(_) | Op::ReducePart | Op::Scan(_) | Op::Histogram | Op::Fold | Op::While
        );
    });
    found
}

/// Whether a term is a reduction that may combine its elements in groups; a loop from the left may not.
pub(super) fn is_associative(f: &Term) -> bool {
    matches!(f.op(), Op::Reduce(ReduceKind::Assoc | ReduceKind::Comm))
}
