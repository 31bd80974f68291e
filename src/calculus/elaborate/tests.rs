//! Elaborated terms have the shapes for which the rewrite rules are written.

use super::*;
use crate::calculus::arbitrary::{
    Build, add, array, cond, expr, f32, float, i32, index, int, mul, op, prim, proj, random, split,
    sub, transpose, tuple, zip,
};
use crate::calculus::scalar::SExpr;
use crate::calculus::term::{MapKind, Op, ReduceKind};
use crate::lang::size::Size;
use crate::lang::typed::{Expr, ExprKind, Prim, ScalarOp};

/// Shows a term compactly, without types.
pub(super) fn show(t: &Term) -> String {
    let args: Vec<String> = t.args().iter().map(wrap).collect();
    let name = match t.op() {
        Op::Compose => return t.chain().iter().map(show).collect::<Vec<_>>().join(" . "),
        Op::Input(n) => n.to_string(),
        Op::Scalar(f) => format!("{{{}}}", leaf(&f.body)),
        Op::Map(MapKind::Plain) => "map".to_owned(),
        Op::Reduce(ReduceKind::Assoc) => "reduce".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    };
    [vec![name], args].concat().join(" ")
}

fn wrap(t: &Term) -> String {
    let text = show(t);
    let braced = text.starts_with('{') && !text.contains(" . ");
    if text.contains(' ') && !braced { format!("({text})") } else { text }
}

fn leaf(e: &SExpr) -> String {
    match e {
        SExpr::Arg => "_".to_owned(),
        SExpr::Proj(a, second) => format!("{}{}", leaf(a), if *second { "2" } else { "1" }),
        SExpr::Lit(l) => {
            l.as_float().map_or_else(|| l.as_int().unwrap_or(0).to_string(), |x| x.to_string())
        }
        SExpr::Input(n, i, _) => format!("{n}.{i}"),
        SExpr::Size(s, _) => s.to_string(),
        SExpr::Op(o, _, es) => {
            let es: Vec<_> = es.iter().map(leaf).collect();
            format!("{o:?}({})", es.join(", "))
        }
        SExpr::If(c, t, f) => format!("if {} then {} else {}", leaf(c), leaf(t), leaf(f)),
        SExpr::Pair(a, b) => format!("({}, {})", leaf(a), leaf(b)),
        SExpr::Let(v, b) => format!("let {} in {}", leaf(v), leaf(b)),
        SExpr::Var(i, _) => format!("v{i}"),
        SExpr::For(i, b, body) => format!("for {} {} {}", leaf(i), leaf(b), leaf(body)),
        SExpr::While(i, c, body) => format!("while {} {} {}", leaf(i), leaf(c), leaf(body)),
    }
}

fn program(b: Build, body: Expr) -> Program {
    let values = ["n", "m", "k", "l"].iter().map(|s| ((*s).to_owned(), 8)).collect();
    elaborate(&b.entry("test", body), &values).expect("elaborates")
}

fn shown(b: Build, body: Expr) -> String {
    show(&program(b, body).term)
}

fn dot(b: &mut Build, xs: Expr, ys: Expr) -> Expr {
    let products = b.map(vec![xs, ys], |_, x| mul(x[0].clone(), x[1].clone()));
    b.reduce(ScalarOp::Add, float(0.0), products)
}

#[test]
fn vectors() {
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let abs = b.map(vec![xs], |_, x| op(ScalarOp::Abs, vec![x[0].clone()]));
    let sum = b.reduce(ScalarOp::Add, float(0.0), abs);
    assert_eq!(shown(b, sum), "reduce {Add(_1, _2)} {0} . map {Abs(_)} . xs");

    let mut b = Build::new();
    let n = b.size("n");
    let alpha = b.input("alpha", f32());
    let xs = b.input("xs", array(&n, &f32()));
    let scal = b.map(vec![xs], |_, x| mul(alpha, x[0].clone()));
    assert_eq!(shown(b, scal), "map {Mul(alpha.0, _)} . xs");

    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let ys = b.input("ys", array(&n, &f32()));
    let d = dot(&mut b, xs, ys);
    assert_eq!(shown(b, d), "reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip . fork xs ys");
}

#[test]
fn gemv() {
    let mut b = Build::new();
    let (n, m) = (b.size("n"), b.size("m"));
    let a = b.input("A", array(&n, &array(&m, &f32())));
    let x = b.input("x", array(&m, &f32()));
    let y = b.input("y", array(&n, &f32()));
    let alpha = b.input("alpha", f32());
    let beta = b.input("beta", f32());
    let body = b.map(vec![a, y], |b, p| {
        let d = dot(b, p[0].clone(), x);
        add(mul(alpha, d), mul(beta, p[1].clone()))
    });
    assert_eq!(
        shown(b, body),
        "map ({Add(Mul(alpha.0, _1), Mul(beta.0, _2))} . bimap \
         (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip . fork id x) id) . zip . fork A y"
    );
}

#[test]
fn matrix_product() {
    let mut b = Build::new();
    let (n, m, k) = (b.size("n"), b.size("m"), b.size("k"));
    let x = b.input("A", array(&n, &array(&k, &f32())));
    let y = b.input("B", array(&k, &array(&m, &f32())));
    let body = b.map(vec![x], |b, row| {
        b.map(vec![transpose(y)], |b, col| dot(b, row[0].clone(), col[0].clone()))
    });
    assert_eq!(
        shown(b, body),
        "map (map (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip)) . cross . \
         fork A (transpose . B)"
    );

    // The transposed matrix is bound by a `let`, and an epilogue reads a third matrix.
    let mut b = Build::new();
    let (n, m, k) = (b.size("n"), b.size("m"), b.size("k"));
    let x = b.input("A", array(&n, &array(&k, &f32())));
    let y = b.input("B", array(&k, &array(&m, &f32())));
    let c = b.input("C", array(&n, &array(&m, &f32())));
    let body = b.bind(transpose(y), |b, yt| {
        b.map(vec![x, c], |b, rows| {
            b.map(vec![yt, rows[1].clone()], |b, p| {
                add(dot(b, rows[0].clone(), p[0].clone()), p[1].clone())
            })
        })
    });
    assert_eq!(
        shown(b, body),
        "map (map ({Add(_1, _2)} . bimap (reduce {Add(_1, _2)} {0} . map {Mul(_1, _2)} . zip) id) \
         . zip) . zip . fork (cross . fork A (transpose . B)) C"
    );
}

#[test]
fn all_pairs() {
    let mut b = Build::new();
    let (n, m) = (b.size("n"), b.size("m"));
    let ps = b.input("ps", array(&n, &f32()));
    let qs = b.input("qs", array(&m, &f32()));
    let body = b.map(vec![ps], |b, p| {
        let forces = b.map(vec![qs], |_, q| sub(p[0].clone(), q[0].clone()));
        b.reduce(ScalarOp::Add, float(0.0), forces)
    });
    assert_eq!(
        shown(b, body),
        "map (reduce {Add(_1, _2)} {0} . map {Sub(_1, _2)}) . cross . fork ps qs"
    );

    // The result is combined with the particle itself, of which only one component is captured.
    let mut b = Build::new();
    let (n, m) = (b.size("n"), b.size("m"));
    let pair = Type::Tuple(vec![f32(), f32()]);
    let ps = b.input("ps", array(&n, &pair));
    let qs = b.input("qs", array(&m, &f32()));
    let body = b.map(vec![ps], |b, p| {
        let forces = b.map(vec![qs], |_, q| sub(proj(p[0].clone(), 0), q[0].clone()));
        let force = b.reduce(ScalarOp::Add, float(0.0), forces);
        add(force, proj(p[0].clone(), 1))
    });
    assert_eq!(
        shown(b, body),
        "map ({Add(_1, _2)} . bimap (reduce {Add(_1, _2)} {0} . map {Sub(_1, _2)}) id) . zip . \
         fork (cross . fork (map fst . ps) qs) (map snd . ps)"
    );
}

#[test]
fn captures() {
    // A value that is computed once and captured.
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let sum = b.reduce(ScalarOp::Add, float(0.0), xs.clone());
    let body = b.bind(sum, |b, s| b.map(vec![xs], |_, x| sub(x[0].clone(), s)));
    assert_eq!(
        shown(b, body),
        "map {Sub(_2, _1)} . distl . fork (reduce {Add(_1, _2)} {0} . xs) xs"
    );

    // Three nested loops over independent arrays.
    let mut b = Build::new();
    let (n, m, k) = (b.size("n"), b.size("m"), b.size("k"));
    let x = b.input("A", array(&n, &f32()));
    let y = b.input("B", array(&m, &f32()));
    let z = b.input("C", array(&k, &f32()));
    let body = b.map(vec![x], |b, p| {
        b.map(vec![y], |b, q| {
            b.map(vec![z], |_, r| add(mul(p[0].clone(), q[0].clone()), r[0].clone()))
        })
    });
    assert_eq!(
        shown(b, body),
        "map (map (map {Add(Mul(_11, _12), _2)})) . map (cross . fork id C) . cross . fork A B"
    );

    // The row is traversed, and the scalar beside it is captured.
    let mut b = Build::new();
    let (n, m) = (b.size("n"), b.size("m"));
    let a = b.input("A", array(&n, &array(&m, &f32())));
    let w = b.input("w", array(&n, &f32()));
    let body =
        b.map(vec![a, w], |b, p| b.map(vec![p[0].clone()], |_, x| mul(p[1].clone(), x[0].clone())));
    assert_eq!(
        shown(b, body),
        "map (map {Mul(_1, _2)}) . map (distl . fork snd fst) . zip . fork A w"
    );
}

#[test]
fn invariant_reductions_move_out() {
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let body = b.map(vec![xs.clone()], |b, x| {
        let sum = b.reduce(ScalarOp::Add, float(0.0), xs);
        sub(x[0].clone(), sum)
    });
    assert_eq!(
        shown(b, body),
        "map {Sub(_2, _1)} . distl . fork (reduce {Add(_1, _2)} {0} . xs) xs"
    );
}

#[test]
fn wide_tuples_are_fast() {
    let mut b = Build::new();
    let (n, m) = (b.size("n"), b.size("m"));
    let wide = Type::Tuple(vec![f32(); 24]);
    let ps = b.input("ps", array(&n, &wide));
    let qs = b.input("qs", array(&m, &wide));
    let body = b.map(vec![ps], |b, p| {
        let terms = b.map(vec![qs], |_, q| {
            (0..24).fold(float(0.0), |sum, i| {
                add(sum, mul(proj(p[0].clone(), i), proj(q[0].clone(), 23 - i)))
            })
        });
        let sum = b.reduce(ScalarOp::Add, float(0.0), terms);
        tuple((0..24).map(|i| add(sum.clone(), proj(p[0].clone(), i))).rev().collect())
    });
    let started = std::time::Instant::now();
    program(b, body);
    assert!(started.elapsed().as_secs() < 5);
}

#[test]
fn projections_and_unused() {
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let ys = b.input("ys", array(&n, &f32()));
    let body = b.map(vec![xs.clone(), ys], |_, p| op(ScalarOp::Sqrt, vec![p[0].clone()]));
    assert_eq!(shown(b, body), "map {Sqrt(_)} . xs");

    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let ys = b.input("ys", array(&n, &f32()));
    let body = b.map(vec![zip(vec![xs, ys])], |_, p| {
        tuple(vec![proj(p[0].clone(), 1), proj(p[0].clone(), 0)])
    });
    assert_eq!(shown(b, body), "map (fork snd fst) . zip . fork xs ys");
}

#[test]
fn scalar_lets_stay_shared() {
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let body = b.map(vec![xs], |b, x| {
        b.bind(op(ScalarOp::Exp, vec![x[0].clone()]), |_, e| {
            cond(op(ScalarOp::Lt, vec![e.clone(), float(1.0)]), e.clone(), mul(e.clone(), e))
        })
    });
    assert_eq!(shown(b, body), "map {let Exp(_) in if Lt(v0, 1) then v0 else Mul(v0, v0)} . xs");
}

#[test]
fn lazy_branches_with_arrays() {
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let is = b.input("is", array(&n, &i32()));
    let body = b.map(vec![is], |_, i| {
        let small = op(ScalarOp::Lt, vec![i[0].clone(), int(3)]);
        add(cond(small, index(xs, i[0].clone()), float(0.0)), float(1.0))
    });
    assert_eq!(shown(b, body), "map ({Add(_, 1)} . cond {Lt(_, 3)} (index . fork xs id) {0}) . is");
}

#[test]
fn sizes_are_monomials_or_named() {
    let mut b = Build::new();
    let n = b.size("n");
    let two = Size::constant(2);
    let xs = b.input("xs", array(&n.mul(&two).add(&Size::constant(4)), &f32()));
    let p = program(b, split(&two, xs));
    assert_eq!(p.result_ty.to_string(), "[(n + 2)][2]f32");
    let named = crate::calculus::size::Sym::Dim("n + 2".into());
    assert_eq!(p.env.get(&named), Some(&10));
}

#[test]
fn sizes_are_checked() {
    let failing = |over: i64| {
        let mut b = Build::new();
        let n = b.size("n");
        let xs = b.input("xs", array(&n.sub(&Size::constant(over)), &f32()));
        let values = [("n".to_owned(), 8)].into_iter().collect();
        let entry = b.entry("test", split(&Size::constant(3), xs));
        elaborate(&entry, &values).expect_err("fails").0.remove(0).code
    };
    assert_eq!(failing(1), Code::NotDivisible);
    assert_eq!(failing(9), Code::SizeRange);
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let failure = elaborate(&b.entry("test", xs), &IndexMap::new()).expect_err("fails");
    assert_eq!(failure.0[0].code, Code::SizeUnknown);
}

#[test]
fn iterates_unroll() {
    let mut b = Build::new();
    let n = b.size("n");
    let xs = b.input("xs", array(&n, &f32()));
    let now = Size::iter_var(0);
    let half = Size::constant(2);
    let f = b.fun(&[array(&now, &f32())], |b, x| {
        b.map(vec![split(&half, x[0].clone())], |b, c| {
            b.reduce(ScalarOp::Add, float(0.0), c[0].clone())
        })
    });
    let ty = array(&n.div(&Size::constant(4)), &f32());
    let body = prim(Prim::Iterate, vec![f], vec![Size::constant(2)], vec![xs], ty);
    let p = program(b, body);
    assert_eq!(p.result_ty.to_string(), "[n/4]f32");
    assert_eq!(
        show(&p.term),
        "map (reduce {Add(_1, _2)} {0}) . split . map (reduce {Add(_1, _2)} {0}) . split . xs"
    );
}

#[test]
fn low_level_patterns_stay() {
    let mut b = Build::new();
    let (n, m) = (b.size("n"), b.size("m"));
    let a = b.input("A", array(&n, &array(&m, &f32())));
    let body = b.map_as(Prim::MapWrg(0), vec![a], |b, row| {
        b.map_as(Prim::MapLcl(0), vec![row[0].clone()], |_, x| mul(x[0].clone(), float(2.0)))
    });
    assert_eq!(shown(b, body), "map(wrg(0)) (map(lcl(0)) {Mul(_, 2)}) . A");
}

#[test]
fn loops_are_leaves_or_reductions_or_folds() {
    let looped = |read: bool, from_zero: bool| {
        let mut b = Build::new();
        let n = b.size("n");
        let xs = b.input("xs", array(&n, &f32()));
        let (acc, i) = (b.var("acc"), b.var("i"));
        let ys = xs.clone();
        let body = b.map(vec![xs], |_, x| {
            let now = expr(ExprKind::Var(acc), f32());
            let at = expr(ExprKind::Var(i), i32());
            let step = if read { mul(index(ys, at), x[0].clone()) } else { x[0].clone() };
            let init = if from_zero { float(0.0) } else { x[0].clone() };
            let kind = ExprKind::LoopFor {
                acc,
                init: Box::new(init),
                index: i,
                bound: Box::new(int(3)),
                body: Box::new(add(now, step)),
            };
            expr(kind, f32())
        });
        let values = [("n".to_owned(), 8)].into_iter().collect();
        elaborate(&b.entry("test", body), &values).map(|p| show(&p.term))
    };
    let leaf = looped(false, false).expect("elaborates");
    assert_eq!(leaf, "map {for _ 3 Add(v1, _)} . xs");
    let fold = looped(true, true).expect("elaborates");
    assert_eq!(
        fold,
        "map (reduce(seq) ({Add(_11, Mul(_2, _12))} . fork (bimap id fst) \
         (index . fork xs (snd . snd))) {0}) . cross . fork xs iota"
    );
    let captured = looped(true, false).expect("elaborates");
    assert_eq!(
        captured,
        "map (fold ({Add(_11, Mul(_2, _12))} . fork (bimap id fst) (index . fork xs (snd . snd)))) \
         . zip . fork xs (cross . fork xs iota)"
    );
}

/// A bound that is computed from the number of bits of a type alone is a number.
#[test]
fn known_bounds_are_numbers() {
    let looped = |bound: Expr| {
        let mut b = Build::new();
        let n = b.size("n");
        let xs = b.input("xs", array(&n, &f32()));
        let (acc, i) = (b.var("acc"), b.var("i"));
        let body = b.map(vec![expr(ExprKind::Var(acc), array(&n, &f32()))], |_, x| x[0].clone());
        let kind = ExprKind::LoopFor {
            acc,
            init: Box::new(xs),
            index: i,
            bound: Box::new(bound),
            body: Box::new(body),
        };
        let values = [("n".to_owned(), 8)].into_iter().collect();
        let term = elaborate(&b.entry("test", expr(kind, array(&n, &f32()))), &values);
        show(&term.map(|p| p.term).expect("elaborates"))
    };
    let op = |op, es| expr(ExprKind::Scalar(op, es), i32());
    let bits = op(ScalarOp::Popcount, vec![int(255)]);
    let known = looped(op(ScalarOp::Div, vec![bits.clone(), int(2)]));
    assert_eq!(known, looped(int(4)));
    // A quotient that does not exist is computed where the program runs.
    assert_ne!(looped(op(ScalarOp::Div, vec![bits, int(0)])), known);
}

#[test]
fn random_programs_elaborate() {
    for seed in 0..3000 {
        let sample = random(seed);
        if let Err(e) = elaborate(&sample.entry, &sample.sizes) {
            assert_eq!(e.0[0].code, Code::NotYetCompiled, "seed {seed}: {e}");
        }
    }
}
