//! Random operators that keep a law by construction, with their neutral element.

use super::Rng;
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::size::Size;
use crate::calculus::term::{MapKind, Op, Term, TypeError};
use crate::calculus::ty::Ty;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType;
use rand::RngExt;
use std::sync::Arc;

/// `op : (a, a) -> a` with its neutral element `unit : () -> a`.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// The operator.
    pub op: Term,
    /// Its neutral element.
    pub unit: Term,
}

type Made = Result<Operator, TypeError>;

/// Returns an operator that is exactly associative, also on floats. It is commutative if asked for; otherwise
/// half of the operators are not, if the type has such operators.
///
/// # Errors
/// For a type with a rule's variable in it.
pub fn lawful(rng: &mut Rng, ty: &Ty, commutative: bool) -> Result<Operator, TypeError> {
    let ordered = !commutative && rng.random();
    build(ty, &mut |t| {
        let all = associative(t, ordered);
        let i = rng.random_range(0..all.len().max(1));
        all.into_iter().nth(i)
    })
}

/// Returns the simplest associative operators of that type, simplest first.
pub fn simple_lawful(ty: &Ty, commutative: bool) -> Vec<Operator> {
    let mut out: Vec<Operator> = vec![];
    let orders: &[bool] = if commutative { &[false] } else { &[false, true] };
    for ordered in orders {
        for k in 0..8 {
            let made = build(ty, &mut |t| associative(t, *ordered).into_iter().nth(k));
            out.extend(made.ok().filter(|o| !out.contains(o)));
        }
    }
    out
}

/// Returns an operator with a neutral element that is not associative, but commutative if asked for. The
/// neutral element keeps every bit, including those of -0.0 and NaN. `None` for a type without integers and
/// floats.
pub fn unital(rng: &mut Rng, ty: &Ty, commutative: bool) -> Option<Operator> {
    let mut numbers = true;
    let made = build(ty, &mut |t| match t {
        Ty::Scalar(s) if s.is_integer() || s.is_float() => {
            let (a, b) = (first(), second());
            if s.is_float() && rng.random_range(0..3) > 0 {
                // The usual operators of programs: sums and products. 0.0 is not neutral for -0.0.
                let sum = rng.random();
                let (o, unit) = if sum { (ScalarOp::Add, -0.0) } else { (ScalarOp::Mul, 1.0) };
                return Some(leaf(t, op(o, *s, a, b), SExpr::Lit(Lit::float(*s, unit))));
            }
            // Not 0: two floats are equal to it.
            let unit = rng.random_range(1..4);
            let neutral = || lit(*s, unit);
            let mix = if commutative {
                let product = op(ScalarOp::Mul, *s, a.clone(), b.clone());
                op(ScalarOp::Add, *s, product, op(ScalarOp::Add, *s, a.clone(), b.clone()))
            } else {
                let double = op(ScalarOp::Add, *s, a.clone(), a.clone());
                op(ScalarOp::Add, *s, double, b.clone())
            };
            let mix = op(ScalarOp::Add, *s, mix, lit(*s, 3));
            let is = |e: &SExpr| op(ScalarOp::Eq, ScalarType::Bool, e.clone(), neutral());
            let body = choose(is(&a), b.clone(), choose(is(&b), a.clone(), mix));
            Some(leaf(t, body, neutral()))
        }
        Ty::Scalar(_) => {
            numbers = false;
            associative(t, false).into_iter().next()
        }
        _ => None,
    });
    made.ok().filter(|_| numbers)
}

fn op(o: ScalarOp, s: ScalarType, a: SExpr, b: SExpr) -> SExpr {
    SExpr::Op(o, s, vec![a, b])
}

fn lit(s: ScalarType, x: i128) -> SExpr {
    SExpr::Lit(Lit::int(s, x))
}

fn choose(c: SExpr, a: SExpr, b: SExpr) -> SExpr {
    SExpr::If(Arc::new(c), Arc::new(a), Arc::new(b))
}

fn first() -> SExpr {
    SExpr::Arg.proj(false)
}

fn second() -> SExpr {
    SExpr::Arg.proj(true)
}

fn leaf(ty: &Ty, body: SExpr, unit: SExpr) -> Operator {
    Operator {
        op: Term::scalar(ScalarFn { dom: Ty::pair(ty, ty), cod: ty.clone(), body }),
        unit: Term::scalar(ScalarFn { dom: Ty::Unit, cod: ty.clone(), body: unit }),
    }
}

/// Returns the largest value of a type, or infinity.
fn highest(s: ScalarType) -> Lit {
    let bits = s.bits();
    match s {
        _ if s.is_float() => Lit::float(s, f64::INFINITY),
        ScalarType::Bool => Lit::int(s, 1),
        _ if s.is_signed() => Lit::int(s, (1 << (bits - 1)) - 1),
        _ => Lit::int(s, (1 << bits) - 1),
    }
}

/// Returns the smallest value of a type, or minus infinity.
fn lowest(s: ScalarType) -> Lit {
    match s {
        _ if s.is_float() => Lit::float(s, f64::NEG_INFINITY),
        _ if s.is_signed() => Lit::int(s, -(1 << (s.bits() - 1))),
        _ => Lit::int(s, 0),
    }
}

/// Returns operators on one type that are not component-wise; if `ordered`, those that do not commute.
fn associative(ty: &Ty, ordered: bool) -> Vec<Operator> {
    let mut out = vec![];
    match ty {
        Ty::Scalar(s) if ordered && *s != ScalarType::Bool => {
            if s.is_integer() {
                // `b` is subtracted from an odd `a`: every element and every position counts.
                let (a, b) = (first(), second());
                let even = op(ScalarOp::Rem, *s, a.clone(), lit(*s, 2));
                let even = op(ScalarOp::Eq, ScalarType::Bool, even, lit(*s, 0));
                let (sum, difference) =
                    (op(ScalarOp::Add, *s, a.clone(), b.clone()), op(ScalarOp::Sub, *s, a, b));
                out.push(leaf(ty, choose(even, sum, difference), lit(*s, 0)));
            }
            // The first (or last) element that is not 0.
            for (x, y) in [(first(), second()), (second(), first())] {
                let zero = op(ScalarOp::Eq, ScalarType::Bool, x.clone(), lit(*s, 0));
                out.push(leaf(ty, choose(zero, y, x), lit(*s, 0)));
            }
        }
        Ty::Scalar(s) => {
            let known: Vec<(ScalarOp, Lit)> = match s {
                ScalarType::Bool => {
                    vec![(ScalarOp::Or, Lit::int(*s, 0)), (ScalarOp::And, Lit::int(*s, 1))]
                }
                // Sums of floats are not exact; selections are.
                _ if s.is_float() => {
                    vec![(ScalarOp::Max, lowest(*s)), (ScalarOp::Min, highest(*s))]
                }
                _ => vec![
                    (ScalarOp::Add, Lit::int(*s, 0)),
                    (ScalarOp::Mul, Lit::int(*s, 1)),
                    (ScalarOp::Max, lowest(*s)),
                    (ScalarOp::Min, highest(*s)),
                ],
            };
            for (o, unit) in known {
                out.push(leaf(ty, op(o, *s, first(), second()), SExpr::Lit(unit)));
            }
        }
        Ty::Pair(a, b) => match (&**a, &**b) {
            (Ty::Scalar(s), Ty::Scalar(t)) if ordered => {
                if s == t && s.is_integer() {
                    out.push(affine(ty, *s));
                }
                if *s == ScalarType::Bool && t.is_integer() {
                    out.push(leftmost(ty, *t));
                }
            }
            (Ty::Scalar(s), Ty::Scalar(t)) if *s != ScalarType::Bool && *t != ScalarType::Bool => {
                out.push(least(ty, *s, *t));
            }
            _ => {}
        },
        Ty::Unit | Ty::Vector(..) | Ty::Array(..) | Ty::Meta(_) => {}
    }
    out
}

/// `x -> a * x + b` as a pair: `(a, b)` after `(c, d)`.
fn affine(ty: &Ty, s: ScalarType) -> Operator {
    let (a, b) = (first().proj(false), first().proj(true));
    let (c, d) = (second().proj(false), second().proj(true));
    let slope = op(ScalarOp::Mul, s, a.clone(), c);
    let offset = op(ScalarOp::Add, s, op(ScalarOp::Mul, s, a, d), b);
    leaf(ty, SExpr::pair(slope, offset), SExpr::pair(lit(s, 1), lit(s, 0)))
}

/// The leftmost value that is present; absent values are added up.
fn leftmost(ty: &Ty, s: ScalarType) -> Operator {
    let (p, x) = (first().proj(false), first().proj(true));
    let (q, y) = (second().proj(false), second().proj(true));
    let neither = SExpr::pair(p.clone(), op(ScalarOp::Add, s, x, y));
    let body = choose(p, first(), choose(q, second(), neither));
    leaf(ty, body, SExpr::pair(lit(ScalarType::Bool, 0), lit(s, 0)))
}

/// The lesser of two pairs by the first component, then by the second.
fn least(ty: &Ty, s: ScalarType, t: ScalarType) -> Operator {
    let (x, i) = (first().proj(false), first().proj(true));
    let (y, j) = (second().proj(false), second().proj(true));
    let test = |o, a: &SExpr, b: &SExpr| op(o, ScalarType::Bool, a.clone(), b.clone());
    let tie = choose(test(ScalarOp::Le, &i, &j), first(), second());
    let less = test(ScalarOp::Lt, &x, &y);
    let body = choose(less, first(), choose(test(ScalarOp::Eq, &x, &y), tie, second()));
    leaf(ty, body, SExpr::pair(SExpr::Lit(highest(s)), SExpr::Lit(highest(t))))
}

/// Builds an operator for a type from `own` for its parts, component-wise where `own` has none.
fn build(ty: &Ty, own: &mut dyn FnMut(&Ty) -> Option<Operator>) -> Made {
    if let Some(found) = own(ty) {
        return Ok(found);
    }
    let node = Term::new;
    match ty {
        Ty::Unit => Ok(Operator {
            op: node(Op::Bang, vec![], vec![Ty::pair(ty, ty)], vec![])?,
            unit: Term::id(ty),
        }),
        Ty::Scalar(_) => {
            let known = associative(ty, false).into_iter().next();
            known.ok_or_else(|| TypeError(format!("no operator on `{ty}`")))
        }
        Ty::Pair(a, b) => {
            let (x, y) = (build(a, own)?, build(b, own)?);
            let side = |op: Op, f: Term| -> Result<Term, TypeError> {
                let part = node(op, vec![], vec![(**a).clone(), (**b).clone()], vec![])?;
                f.after(&node(Op::Bimap, vec![], vec![], vec![part.clone(), part])?)
            };
            let sides = vec![side(Op::Fst, x.op)?, side(Op::Snd, y.op)?];
            Ok(Operator {
                op: node(Op::Fork, vec![], vec![], sides)?,
                unit: node(Op::Fork, vec![], vec![], vec![x.unit, y.unit])?,
            })
        }
        Ty::Vector(w, t) => {
            let x = build(t, own)?;
            let splat = node(Op::Splat, vec![w.clone()], vec![(**t).clone()], vec![])?;
            Ok(Operator {
                op: node(Op::Vectorize, vec![w.clone()], vec![], vec![x.op])?,
                unit: splat.after(&x.unit)?,
            })
        }
        Ty::Array(n, t) => {
            let x = build(t, own)?;
            let one = |n: &Size| vec![n.clone()];
            let tys = vec![(**t).clone(), (**t).clone()];
            let zip = node(Op::Zip, one(n), tys, vec![])?;
            let replicate = node(Op::Replicate, one(n), vec![(**t).clone()], vec![])?;
            let map = node(Op::Map(MapKind::Plain), one(n), vec![], vec![x.op])?;
            Ok(Operator { op: map.after(&zip)?, unit: replicate.after(&x.unit)? })
        }
        Ty::Meta(m) => Err(TypeError(format!("the type variable `{m}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rng, Style, rng, value};
    use super::*;
    use crate::calculus::eval::{self, Inputs};
    use crate::calculus::size::SizeEnv;
    use crate::calculus::text::parse_type;
    use crate::calculus::value::Value;
    use crate::diag::Source;

    fn ty(t: &str) -> Ty {
        parse_type(&Source::new("t", t), 0..t.len()).expect("a type")
    }

    fn run(f: &Term, x: &Value) -> Value {
        eval::apply(f, &SizeEnv::default(), &Inputs::new(), x)
            .expect("an operator has a value everywhere")
    }

    fn together(o: &Operator, a: &Value, b: &Value) -> Value {
        run(&o.op, &Value::tuple([a.clone(), b.clone()]))
    }

    fn three(rng: &mut Rng, t: &Ty) -> [Value; 3] {
        let shape = eval::shape(t, &SizeEnv::default()).expect("the type has no symbols");
        let styles = [Style::Small, Style::Few, Style::Extreme];
        let style = styles[rng.random_range(0..3)];
        [(); 3].map(|()| value(rng, &shape, style))
    }

    const TYPES: [&str; 9] = [
        "i32",
        "i64",
        "f32",
        "bool",
        "(i32, i32)",
        "(bool, i32)",
        "(f32, i32)",
        "[3](i32, f32)",
        "(<2>i32, (bool, bool))",
    ];

    #[test]
    fn lawful_ones_keep_their_laws() {
        let mut ordered = 0;
        for t in TYPES {
            let t = ty(t);
            for seed in 0..120 {
                let rng = &mut rng(seed, "lawful", 0);
                let commutative = seed % 2 == 0;
                let o = lawful(rng, &t, commutative).expect("there is an operator on any type");
                let z = run(&o.unit, &Value::unit());
                let [a, b, c] = three(rng, &t);
                let left = together(&o, &together(&o, &a, &b), &c);
                assert_eq!(left, together(&o, &a, &together(&o, &b, &c)), "{}", o.op);
                assert_eq!(together(&o, &z, &a), a, "{} {}", o.op, o.unit);
                assert_eq!(together(&o, &a, &z), a, "{} {}", o.op, o.unit);
                let commutes = together(&o, &a, &b) == together(&o, &b, &a);
                assert!(commutes || !commutative, "{}", o.op);
                ordered += usize::from(!commutes);
            }
        }
        assert!(ordered > 50, "{ordered} showed that they do not commute");
    }

    #[test]
    fn unital_ones_are_not_associative() {
        for t in ["i32", "(i32, i64)", "[2]i32", "f32", "(f32, i32)", "[2]f64"] {
            let t = ty(t);
            for commutative in [true, false] {
                let mut broken = 0;
                for seed in 0..50 {
                    let rng = &mut rng(seed, "unital", 0);
                    let o = unital(rng, &t, commutative).expect("there is an operator on any type");
                    let z = run(&o.unit, &Value::unit());
                    let shape =
                        eval::shape(&t, &SizeEnv::default()).expect("the type has no symbols");
                    let [a, b, c] = [(); 3].map(|()| value(rng, &shape, Style::Wild));
                    assert!(together(&o, &z, &a).same_bits(&a), "{} of {z} and {a}", o.op);
                    assert!(together(&o, &a, &z).same_bits(&a), "{} of {a} and {z}", o.op);
                    let (ab, ba) = (together(&o, &a, &b), together(&o, &b, &a));
                    assert!(!commutative || ab.same_bits(&ba), "{} of {a} and {b}", o.op);
                    let left = together(&o, &ab, &c);
                    let right = together(&o, &a, &together(&o, &b, &c));
                    broken += usize::from(!left.same_bits(&right));
                }
                assert!(broken > 10, "{t}: {broken}");
            }
        }
        assert_eq!(unital(&mut rng(0, "unital", 1), &ty("bool"), false), None);
    }
}
