//! Expands vectorised functions: `vectorize w f`, for a function `f` of rows, becomes loops over vectors.
//!
//! Functions on elements, and functions that only rearrange, keep their `vectorize`. A reduction becomes one
//! of vectors: `vectorize w (reduce op z) = reduce (vectorize w op) (splat w . z)`.

use super::size::Size;
use super::term::{Op, Term, TypeError};
use super::ty::Ty;
use crate::lang::typed::PadMode;

/// Returns `vectorize w f` with `vectorize` pushed inwards through all loops.
///
/// # Errors
/// When a part of `f` has no vector form; the error names the part.
pub(super) fn push(w: &Size, f: &Term) -> Result<Term, TypeError> {
    // The vector form of a function that works on elements without loops is the same code.
    if f.is_elementary() || only_rearranges(f) {
        return vectorize(w, f);
    }
    let new = |args: Vec<Term>| {
        let tys = f.tys().iter().map(|t| lanes(w, t)).collect::<Result<_, _>>()?;
        Term::new(f.op().clone(), f.sizes().to_vec(), tys, args)
    };
    match (f.op(), f.args()) {
        (Op::Compose, _) => chain(w, &f.chain()),
        (Op::Fork | Op::Bimap, [a, b]) => new(vec![push(w, a)?, push(w, b)?]),
        (Op::Map(_), [g]) => new(vec![push(w, g)?]),
        (Op::Reduce(_) | Op::Scan(_), [op, z]) => {
            new(vec![push(w, op)?, splat(w, &z.ty().cod)?.after(z)?])
        }
        _ => Err(TypeError(format!("`{f}` has no vector form"))),
    }
}

/// Neighbouring factors that only rearrange stay together, so that their lanes are taken apart once.
fn chain(w: &Size, factors: &[Term]) -> Result<Term, TypeError> {
    let mut out: Option<Term> = None;
    let mut rest = factors;
    while let Some((first, _)) = rest.split_first() {
        let views = rest.iter().take_while(|f| only_rearranges(f)).count();
        let (run, behind) = rest.split_at(views.max(1));
        let part = match views {
            0 => push(w, first)?,
            _ => {
                let whole = run[1..].iter().try_fold(first.clone(), |all, f| all.after(f))?;
                vectorize(w, &whole)?
            }
        };
        out = Some(match out {
            None => part,
            Some(all) => all.after(&part)?,
        });
        rest = behind;
    }
    out.ok_or_else(|| TypeError("an empty chain".to_owned()))
}

fn vectorize(w: &Size, f: &Term) -> Result<Term, TypeError> {
    Term::new(Op::Vectorize, vec![w.clone()], vec![], vec![f.clone()])
}

fn lanes(w: &Size, t: &Ty) -> Result<Ty, TypeError> {
    Ty::vector(w, t).ok_or_else(|| TypeError(format!("`{t}` has no vector form")))
}

/// Returns the function that puts a value of this type in every lane.
fn splat(w: &Size, t: &Ty) -> Result<Term, TypeError> {
    match t {
        Ty::Array(n, t) => {
            let map = Op::Map(super::term::MapKind::Plain);
            Term::new(map, vec![n.clone()], vec![], vec![splat(w, t)?])
        }
        Ty::Pair(a, b) if t.has_array() => {
            Term::new(Op::Bimap, vec![], vec![], vec![splat(w, a)?, splat(w, b)?])
        }
        t => Term::new(Op::Splat, vec![w.clone()], vec![t.clone()], vec![]),
    }
}

/// Whether a function only moves elements, including constants.
fn only_rearranges(f: &Term) -> bool {
    match f.op() {
        op if op.is_frame() => f.args().iter().all(only_rearranges),
        // The padding of these is a function argument: it must be a constant.
        Op::PadTo | Op::Pad(PadMode::Constant) => f.args()[0].ty().dom == Ty::Unit,
        op => op.is_view(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculus::eval;
    use crate::calculus::size::SizeEnv;
    use crate::calculus::text::{Context, parse_type, read_term};
    use crate::calculus::value::Value;
    use crate::diag::Source;
    use crate::lang::types::ScalarType::I32;

    fn context() -> Context {
        let inputs = [("xs", "[7][4]i32"), ("ps", "[7]i32"), ("table", "[5]i32")];
        let typed = inputs.map(|(name, ty)| {
            (name.to_owned(), parse_type(&Source::new("type", ty), 0..ty.len()).expect("a type"))
        });
        Context { inputs: typed.into_iter().collect(), variables: None }
    }

    fn read(text: &str) -> Term {
        read_term(&Source::new("term", text), &Ty::Unit, &context()).expect("a term")
    }

    fn value(t: &Term) -> Vec<i128> {
        let numbers = |dims: &[usize]| {
            let n: usize = dims.iter().product();
            Value::ints(I32, dims, &(0i64..).take(n).map(|i| i * i % 5).collect::<Vec<_>>())
        };
        let inputs = [("xs", &[7, 4][..]), ("ps", &[7]), ("table", &[5])];
        let inputs = inputs.map(|(name, dims)| (name.into(), numbers(dims))).into_iter().collect();
        let out = eval::apply(t, &SizeEnv::default(), &inputs, &Value::unit());
        out.expect("a value").to_ints()
    }

    #[test]
    fn rows_in_lanes_give_what_rows_give() {
        let table = "gather . fork table id";
        for (f, rows) in [
            ("reduce (+) 0", "xs"),
            ("(\\a -> a * a + 1) . reduce max 0 . map (\\a -> a - 2)", "xs"),
            ("reduce (+) 0 . map (\\a -> if a < 2 then a else 7 - a)", "xs"),
            ("reduceSeq (\\(a, x) -> 2 * a + x) 1 . reverse", "xs"),
            ("reduce (+) 0 . map (reduce (*) 1) . split 2", "xs"),
            (&format!("reduce (+) 0 . {table}"), "xs"),
            ("reduce (+) 0 . map (*) . distl", "zip . fork ps xs"),
            ("(+) . bimap id (reduce (+) 0)", "zip . fork ps xs"),
            ("the . wrap . (\\a -> a + 1) . reduce (+) 0 . map (*) . zip . fork id reverse", "xs"),
        ] {
            let plain = read(&format!("map ({f}) . {rows}"));
            for w in [2, 4, 8] {
                let vectors = format!(
                    "take 7 . asScalar . map (vectorize {w} ({f})) . asVector {w} . padLast 8 . {rows}"
                );
                let vectors = read(&vectors);
                assert_eq!(value(&vectors), value(&plain), "{vectors}");
                let pushed = vectors.expand().expect("a vector form");
                assert_eq!(value(&pushed), value(&plain), "{pushed}");
                // No loop remains inside `vectorize`.
                pushed.visit(&mut |t| {
                    if *t.op() == Op::Vectorize {
                        let f = &t.args()[0];
                        assert!(f.is_elementary() || only_rearranges(f), "{pushed}");
                    }
                });
            }
        }
    }

    #[test]
    fn what_has_no_vector_form_is_named() {
        for (f, what) in [
            ("reduce (+) 0 . histogram 5 (+) 0 . fork id id", "histogram"),
            ("reduce (+) 0 . asScalar . map (vectorize 2 abs) . asVector 2", "<2>i32"),
        ] {
            let t = read(&format!("asScalar . map (vectorize 7 ({f})) . asVector 7 . xs"));
            let error = t.expand().expect_err(what).0;
            assert!(error.contains(what) && error.contains("no vector form"), "{error}");
        }
    }
}
