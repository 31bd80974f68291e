//! Large arrays that the function of a map only passes on are no part of what the map computes.
//!
//! An inner function gets what it needs as a tuple, which an outer map computes: `map (fork v f)`, where `f` computes numbers and `v` gives
//! each element an array that all elements share, such as a whole matrix. A kernel for that map would store a copy of the matrix for each
//! element. `zip . fork (map v) (map f)` means the same, and its first side is a view.
//!
//! Which arrays elements share is not looked for: copies of them are much larger than everything that the program reads.

use super::build::{self, Built};
use super::loops_out::scalars_of_arrays;
use crate::calculus::size::SizeEnv;
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;

/// How many times as large as all inputs an array is that is not worth storing.
const LARGE: u64 = 16;

/// Returns the term with views in the place of arrays that maps only pass on.
///
/// # Errors
/// Never for a well-typed term; building the parts repeats the type checks.
pub(super) fn not_stored(t: &Term, env: &SizeEnv) -> Built {
    // An input counts wherever it is read.
    let mut read: u64 = 0;
    t.visit(&mut |t| {
        if matches!(t.op(), Op::Input(_)) {
            read = read.saturating_add(scalars_of_arrays(&t.ty().cod, env));
        }
    });
    let most = read.max(1).saturating_mul(LARGE);
    if !may_store(t, most, env) {
        return Ok(t.clone());
    }
    Ok(within(t, most, env)?.unwrap_or_else(|| t.clone()))
}

/// Whether some part gives an array of more than `most` elements.
fn may_store(t: &Term, most: u64, env: &SizeEnv) -> bool {
    scalars_of_arrays(&t.ty().cod, env) > most || t.args().iter().any(|a| may_store(a, most, env))
}

/// Returns the term if it changes. `most` is the number of elements of an array that is not worth storing, in one step of the maps
/// around the term.
fn within(t: &Term, most: u64, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let mut done = Term::id(&t.ty().dom);
    // Whether anything has changed, and whether the last factor puts a result together.
    let (mut changed, mut put_together) = (false, false);
    for f in t.chain().into_iter().rev() {
        let is_map = *f.op() == Op::Map(MapKind::Plain);
        let steps = if is_map { f.sizes()[0].eval(env).unwrap_or(1).max(1) } else { 1 };
        let f = build::each_arg(&f, |a| {
            let inner = within(a, most / steps, env)?;
            changed |= inner.is_some();
            Ok(inner.unwrap_or_else(|| a.clone()))
        })?;
        // Two maps that follow each other are one.
        let (f, rest) = match is_map && put_together {
            true => {
                let both = build::compose(&f.args()[0], &done.chain()[0].args()[0])?;
                (build::map(MapKind::Plain, &f.sizes()[0], &both)?, build::rest(&done)?)
            }
            false => (f, done),
        };
        let parts = if is_map { split(&f, most / steps, env)? } else { None };
        let is_split = parts.is_some();
        changed |= is_split;
        done = build::compose(&parts.unwrap_or(f), &rest)?;
        put_together = is_split && matches!(done.chain()[0].op(), Op::Map(MapKind::Plain));
    }
    Ok(changed.then_some(done))
}

/// A result, taken apart where the function makes pairs. A leaf says whether it is a large array that the function passes on.
enum Parts {
    Leaf(bool),
    Pair(Box<Parts>, Box<Parts>),
}

impl Parts {
    fn of(h: &Term, most: u64, env: &SizeEnv) -> Result<Parts, TypeError> {
        let pairs = matches!(h.chain()[0].op(), Op::Fork | Op::Bimap);
        if !pairs {
            return Ok(Parts::Leaf(h.is_view() && scalars_of_arrays(&h.ty().cod, env) > most));
        }
        let part = |second| {
            let side = build::compose(&build::proj(&h.ty().cod, second)?, h)?;
            Parts::of(&side, most, env).map(Box::new)
        };
        Ok(Parts::Pair(part(false)?, part(true)?))
    }

    /// Whether there are such leaves, or others.
    fn has(&self, passed: bool) -> bool {
        match self {
            Parts::Leaf(own) => *own == passed,
            Parts::Pair(a, b) => a.has(passed) || b.has(passed),
        }
    }

    /// Returns the function that gives only these leaves of what `h` gives.
    fn only(&self, passed: bool, h: &Term) -> Built {
        let Parts::Pair(a, b) = self else { return Ok(h.clone()) };
        let (ty, chain) = (&h.ty().cod, h.chain());
        let side = |part: &Parts, second: bool| {
            part.only(passed, &build::compose(&build::proj(ty, second)?, h)?)
        };
        match (a.has(passed), b.has(passed)) {
            (true, false) => side(a, false),
            (false, true) => side(b, true),
            // What both sides need is computed once.
            _ => {
                let [x, y] = [(a, 0), (b, 1)].map(|(p, k)| p.only(passed, &chain[0].args()[k]));
                let pair = if *chain[0].op() == Op::Fork { build::fork } else { build::bimap };
                build::compose(&pair(&x?, &y?)?, &build::rest(h)?)
            }
        }
    }

    /// Returns the whole result, given how both kinds of leaves are found in a pair of them.
    fn whole(&self, passed: &Term, computed: &Term) -> Built {
        let Parts::Pair(a, b) = self else {
            return Ok(if self.has(true) { passed.clone() } else { computed.clone() });
        };
        let of = |all: &Term, kind: bool, second: bool| match (a.has(kind), b.has(kind)) {
            (true, true) => build::compose(&build::proj(&all.ty().cod, second)?, all),
            _ => Ok(all.clone()),
        };
        let first = a.whole(&of(passed, true, false)?, &of(computed, false, false)?)?;
        let second = b.whole(&of(passed, true, true)?, &of(computed, false, true)?)?;
        build::fork(&first, &second)
    }
}

/// Returns a map in two parts: the arrays that it passes on, and what it computes.
fn split(map: &Term, most: u64, env: &SizeEnv) -> Result<Option<Term>, TypeError> {
    let (n, h) = (&map.sizes()[0], &map.args()[0]);
    if h.is_view() || scalars_of_arrays(&h.ty().cod, env) <= most {
        return Ok(None);
    }
    let parts = Parts::of(h, most, env)?;
    if !parts.has(true) || !parts.has(false) {
        return Ok(None);
    }
    let (passed, computed) = (parts.only(true, h)?, parts.only(false, h)?);
    let both = Ty::pair(&passed.ty().cod, &computed.ty().cod);
    let whole = parts.whole(&build::proj(&both, false)?, &build::proj(&both, true)?)?;
    let [passed, computed] = [passed, computed].map(|f| build::map(MapKind::Plain, n, &f));
    let zip = build::view(Op::Zip, &build::fork(&passed?, &computed?)?)?;
    build::compose(&build::map(MapKind::Plain, n, &whole)?, &zip).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::size::{Size, Sym};
    use crate::calculus::text::{Context, read_term};
    use crate::diag::Source;
    use crate::lang::types::ScalarType;

    fn without(text: &str, n: u64) -> String {
        let array = Ty::array(&Size::dim("n"), &Ty::Scalar(ScalarType::F32));
        let inputs = [("xs".to_owned(), array.clone()), ("ys".to_owned(), array)].into();
        let context = Context { inputs, variables: None };
        let t = read_term(&Source::new("t", text), &Ty::Unit, &context).expect("a term");
        let env = SizeEnv::from_iter([(Sym::Dim("n".into()), n)]);
        let new = not_stored(&t, &env).expect("well-typed");
        assert_eq!(new.ty(), t.ty());
        new.to_string()
    }

    #[test]
    fn shared_arrays_are_views() {
        let pairs = "map (bimap abs id) . distr . fork xs ys";
        assert_eq!(
            without(pairs, 4096),
            "map (fork snd fst) . zip . fork (map snd . distr . fork xs ys) (map (abs . fst) . distr . fork xs ys)"
        );
        // Few copies are stored as they are.
        assert_eq!(without(pairs, 16), pairs);
        // The next map that passes them on computes behind the first.
        let twice = format!("map (bimap sqrt id) . {pairs}");
        let text = without(&twice, 4096);
        assert!(text.starts_with("map (fork snd fst) . zip . fork (map snd . distr"), "{text}");
        assert_eq!(text.matches("zip").count(), 1, "{text}");
    }
}
