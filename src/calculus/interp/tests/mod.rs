//! Each pattern on small inputs, with results computed by hand.

mod chosen;
mod doubt;
mod programs;

use super::*;
use crate::calculus::value::{Cell, compare};
use crate::lang::typed::{Fun, Literal, PadMode, Param, ScalarOp, ScanKind, VarId};
use crate::lang::types::ScalarType::{self, Bool, F32, I8, I32};

fn k(n: i64) -> Size {
    Size::constant(n)
}

fn n() -> Size {
    Size::var("n")
}

fn sc(t: ScalarType) -> Type {
    Type::Scalar(t)
}

fn arr(n: Size, t: Type) -> Type {
    Type::Array(n, Box::new(t))
}

fn ex(ty: Type, kind: ExprKind) -> Expr {
    Expr { kind, ty, span: Span::new(3, 7) }
}

fn var(i: u32, ty: Type) -> Expr {
    ex(ty, ExprKind::Var(VarId(i)))
}

fn int(x: i128) -> Expr {
    ex(sc(I32), ExprKind::Lit(Literal::Int(x)))
}

fn float(x: f64) -> Expr {
    ex(sc(F32), ExprKind::Lit(Literal::Float(x)))
}

fn op(op: ScalarOp, t: ScalarType, es: Vec<Expr>) -> Expr {
    ex(sc(t), ExprKind::Scalar(op, es))
}

fn fun(params: &[(u32, Type)], body: Expr) -> Fun {
    let params = params.iter().map(|(i, t)| (VarId(*i), t.clone())).collect();
    Fun { params, body: Box::new(body) }
}

/// `\a b -> a o b`, with variables of its own.
fn op2(o: ScalarOp, t: ScalarType) -> Fun {
    let body = op(o, t, vec![var(90, sc(t)), var(91, sc(t))]);
    fun(&[(90, sc(t)), (91, sc(t))], body)
}

/// `\a -> a o x`.
fn with(o: ScalarOp, x: i128, t: ScalarType) -> Fun {
    fun(&[(92, sc(I32))], op(o, t, vec![var(92, sc(I32)), int(x)]))
}

fn prim(prim: Prim, ty: Type, funs: Vec<Fun>, sizes: &[i64], args: Vec<Expr>) -> Expr {
    let sizes = sizes.iter().map(|s| k(*s)).collect();
    ex(ty, ExprKind::Prim { prim, funs, sizes, args })
}

fn entry(params: &[(&str, Type)], body: Expr) -> Entry {
    let params = params.iter().zip(0..).map(|((name, ty), i)| Param {
        name: (*name).to_owned(),
        var: VarId(i),
        ty: ty.clone(),
        labels: vec![],
        span: Span::default(),
    });
    Entry {
        name: "test".to_owned(),
        doc: String::new(),
        sizes: vec!["n".to_owned()],
        params: params.collect(),
        size_params: vec![],
        shown: vec![],
        divides: vec![],
        body,
        names: vec![],
        span: Span::default(),
    }
}

fn ints(xs: &[i64]) -> Value {
    Value::ints(I32, &[xs.len()], xs)
}

fn sizes(n: usize) -> Sizes {
    Sizes::from_iter([("n".to_owned(), n as u64)])
}

/// Runs an entry with this body whose parameter 0 is `xs: [n]i32`.
fn on(xs: &[i64], body: Expr) -> Result<Value> {
    let e = entry(&[("xs", arr(n(), sc(I32)))], body);
    run(&e, &sizes(xs.len()), &[ints(xs)])
}

fn xs() -> Expr {
    var(0, arr(n(), sc(I32)))
}

fn to(n: i64) -> Type {
    arr(k(n), sc(I32))
}

#[expect(clippy::needless_pass_by_value, reason = "callers write an expression in place")]
fn gives(xs: &[i64], body: Expr, want: &[i128]) {
    assert_eq!(
        on(xs, body.clone()).expect("the program has a value").to_ints(),
        want,
        "{:?}",
        body.kind
    );
}

#[test]
fn rearrangements() {
    let six = &[0, 1, 2, 3, 4, 5][..];
    let view = |p, t, s: &[i64]| prim(p, t, vec![], s, vec![xs()]);
    let rows = || view(Prim::Split, arr(k(3), to(2)), &[2]);
    gives(six, prim(Prim::Join, to(6), vec![], &[], vec![rows()]), &[0, 1, 2, 3, 4, 5]);
    let turned = || prim(Prim::Transpose, arr(k(2), to(3)), vec![], &[], vec![rows()]);
    gives(six, turned(), &[0, 2, 4, 1, 3, 5]);
    gives(
        six,
        prim(Prim::Transpose, arr(k(3), to(2)), vec![], &[], vec![turned()]),
        &[0, 1, 2, 3, 4, 5],
    );
    gives(six, view(Prim::Reverse, to(6), &[]), &[5, 4, 3, 2, 1, 0]);
    gives(six, view(Prim::Reorder, to(6), &[]), &[0, 1, 2, 3, 4, 5]);
    gives(
        &[0, 1, 2, 3, 4, 5, 6, 7],
        view(Prim::ReorderStride, to(8), &[4]),
        &[0, 4, 1, 5, 2, 6, 3, 7],
    );
    gives(six, view(Prim::Take, to(2), &[2]), &[0, 1]);
    gives(six, view(Prim::Drop, to(4), &[2]), &[2, 3, 4, 5]);
    gives(six, view(Prim::Rotate, to(6), &[2]), &[2, 3, 4, 5, 0, 1]);
    gives(six, view(Prim::Slide, arr(k(2), to(4)), &[4, 2]), &[0, 1, 2, 3, 2, 3, 4, 5]);
    gives(&[7, 8], view(Prim::Pad(PadMode::Clamp), to(5), &[1, 2]), &[7, 7, 8, 8, 8]);
    gives(&[7, 8], view(Prim::Pad(PadMode::Wrap), to(5), &[1, 2]), &[8, 7, 8, 7, 8]);
    gives(&[7, 8], view(Prim::Pad(PadMode::Mirror), to(5), &[1, 2]), &[7, 7, 8, 8, 7]);
    let constant = prim(Prim::Pad(PadMode::Constant), to(5), vec![], &[1, 2], vec![xs(), int(9)]);
    gives(&[7, 8], constant, &[9, 7, 8, 9, 9]);
    gives(&[7, 8], prim(Prim::Concat, to(4), vec![], &[], vec![xs(), xs()]), &[7, 8, 7, 8]);
    gives(&[], prim(Prim::Iota, to(3), vec![], &[3], vec![]), &[0, 1, 2]);
    gives(&[], prim(Prim::Replicate, to(3), vec![], &[3], vec![int(4)]), &[4, 4, 4]);
    gives(
        &[],
        prim(Prim::Generate, to(3), vec![with(ScalarOp::Mul, 5, I32)], &[3], vec![]),
        &[0, 5, 10],
    );
    let failed = on(&[1, 2, 3], view(Prim::Split, arr(k(1), to(2)), &[2])).unwrap_err();
    assert_eq!(failed.to_string(), "E0303: `split`: 2 does not divide 3");
    assert_eq!(failed.0[0].labels[0].span, Span::new(3, 7));
}

#[test]
fn maps() {
    let inc = || with(ScalarOp::Add, 1, I32);
    for p in [
        Prim::Map,
        Prim::MapWrg(0),
        Prim::MapLcl(1),
        Prim::MapGlb(2),
        Prim::MapSeq,
        Prim::MapUnroll,
        Prim::MapWarp,
        Prim::MapLane,
    ] {
        gives(&[1, 2], prim(p, to(2), vec![inc()], &[], vec![xs()]), &[2, 3]);
    }
    gives(
        &[5, 6],
        prim(Prim::Map, to(2), vec![op2(ScalarOp::Mul, I32)], &[], vec![xs(), xs()]),
        &[25, 36],
    );
    let pair = Type::Tuple(vec![sc(I32), sc(I32)]);
    let zipped = prim(Prim::Zip, arr(k(2), pair.clone()), vec![], &[], vec![xs(), xs()]);
    let swap = ex(
        pair.clone(),
        ExprKind::Tuple(vec![
            int(1),
            ex(sc(I32), ExprKind::Proj(Box::new(var(5, pair.clone())), 0)),
        ]),
    );
    let swapped =
        prim(Prim::Map, arr(k(2), pair.clone()), vec![fun(&[(5, pair)], swap)], &[], vec![zipped]);
    let both = Type::Tuple(vec![to(2), to(2)]);
    gives(&[5, 6], prim(Prim::Unzip, both, vec![], &[], vec![swapped]), &[1, 1, 5, 6]);
    for p in [Prim::ToGlobal, Prim::ToLocal, Prim::ToPrivate] {
        let f =
            fun(&[(6, to(2))], prim(Prim::MapSeq, to(2), vec![inc()], &[], vec![var(6, to(2))]));
        gives(&[1, 2], prim(p, to(2), vec![f], &[], vec![xs()]), &[2, 3]);
    }
    gives(&[], prim(Prim::Map, to(0), vec![inc()], &[], vec![xs()]), &[]);
}

#[test]
fn reductions() {
    let add = || op2(ScalarOp::Add, I32);
    for p in [Prim::Reduce, Prim::ReduceComm, Prim::ReduceSeq, Prim::ReduceUnroll] {
        gives(&[1, 2, 3], prim(p, sc(I32), vec![add()], &[], vec![int(0), xs()]), &[6]);
        gives(&[], prim(p, sc(I32), vec![add()], &[], vec![int(7), xs()]), &[7]);
    }
    for p in [Prim::Scan(ScanKind::Assoc), Prim::Scan(ScanKind::Seq)] {
        gives(&[1, 2, 3], prim(p, to(3), vec![add()], &[], vec![int(0), xs()]), &[1, 3, 6]);
    }
    let before = Prim::Scan(ScanKind::Exclusive);
    gives(&[1, 2, 3], prim(before, to(3), vec![add()], &[], vec![int(5), xs()]), &[5, 6, 8]);
    gives(&[], prim(before, to(0), vec![add()], &[], vec![int(5), xs()]), &[]);
    gives(
        &[1, 2, 3, 4],
        prim(Prim::ReducePart, to(2), vec![add()], &[2], vec![int(0), xs()]),
        &[3, 7],
    );
    // The accumulator may have another type than the elements: here the count and the sum.
    let acc = Type::Tuple(vec![sc(I32), sc(I32)]);
    let part = |i| ex(sc(I32), ExprKind::Proj(Box::new(var(7, acc.clone())), i));
    let next = vec![
        op(ScalarOp::Add, I32, vec![part(1), int(1)]),
        op(ScalarOp::Add, I32, vec![part(0), var(8, sc(I32))]),
    ];
    let f = fun(&[(7, acc.clone()), (8, sc(I32))], ex(acc.clone(), ExprKind::Tuple(next)));
    let zeros = ex(acc.clone(), ExprKind::Tuple(vec![int(0), int(0)]));
    // (0,0) -> (1,5) -> (6,6) -> (7,13): both read the old accumulator.
    gives(&[5, 5, 7], prim(Prim::ReduceSeq, acc, vec![f], &[], vec![zeros, xs()]), &[7, 13]);
    let is = prim(Prim::Map, to(4), vec![with(ScalarOp::Rem, 3, I32)], &[], vec![xs()]);
    let counts = prim(Prim::Histogram, to(2), vec![add()], &[2], vec![int(0), is, xs()]);
    gives(&[3, 4, 5, 6], counts, &[9, 4]);
}

#[test]
fn indices() {
    let gather = |is| prim(Prim::Gather, to(2), vec![], &[], vec![xs(), is]);
    let twice = prim(Prim::Iota, to(2), vec![], &[2], vec![]);
    gives(&[7, 8, 9], gather(twice), &[7, 8]);
    let far = prim(Prim::Replicate, to(2), vec![], &[2], vec![int(3)]);
    assert_eq!(
        on(&[7, 8, 9], gather(far.clone())).unwrap_err().to_string(),
        "E0505: `gather`: index 3 (at 0) is outside an array of 3 elements"
    );
    let vs = prim(Prim::Iota, to(2), vec![], &[2], vec![]);
    let scatter = |is| prim(Prim::Scatter, to(3), vec![], &[], vec![xs(), is, vs.clone()]);
    gives(&[7, 8, 9], scatter(far), &[7, 8, 9]);
    gives(
        &[7, 8, 9],
        scatter(prim(Prim::Reverse, to(2), vec![], &[], vec![vs.clone()])),
        &[1, 0, 9],
    );
    let same = prim(Prim::Replicate, to(2), vec![], &[2], vec![int(1)]);
    assert_eq!(on(&[7, 8, 9], scatter(same)).unwrap_err().0[0].code, Error::Eval);
    let index = |a: Expr, i: i128, ty: Type| ex(ty, ExprKind::Index(Box::new(a), Box::new(int(i))));
    gives(&[7, 8, 9], index(xs(), 1, sc(I32)), &[8]);
    assert_eq!(on(&[7, 8, 9], index(xs(), -1, sc(I32))).unwrap_err().0[0].code, Error::Eval);
    let rows = prim(Prim::Split, arr(k(2), to(2)), vec![], &[2], vec![xs()]);
    gives(&[1, 2, 3, 4], index(rows.clone(), 1, to(2)), &[3, 4]);
    gives(&[1, 2, 3, 4], index(index(rows, 1, to(2)), 0, sc(I32)), &[3]);
}

#[test]
fn control() {
    let divide = op(ScalarOp::Div, I32, vec![int(1), int(0)]);
    let failed = on(&[], divide.clone()).unwrap_err();
    assert_eq!(failed.to_string(), "E0505: `/`: integer division by zero");
    let yes = ex(sc(Bool), ExprKind::Lit(Literal::Bool(true)));
    let lazy = |e: ExprKind, t| ex(sc(t), e);
    gives(
        &[],
        lazy(ExprKind::If(Box::new(yes.clone()), Box::new(int(1)), Box::new(divide.clone())), I32),
        &[1],
    );
    let zero = op(ScalarOp::Eq, Bool, vec![divide, int(0)]);
    gives(&[], op(ScalarOp::Or, Bool, vec![yes, zero]), &[1]);
    // let v = xs[0] in loop (a = v) for i < 4 do a * 2 + i
    let (v, a, i) = (VarId(3), VarId(4), VarId(5));
    let body = op(ScalarOp::Mul, I32, vec![var(4, sc(I32)), int(2)]);
    let body = op(ScalarOp::Add, I32, vec![body, var(5, sc(I32))]);
    let init = Box::new(var(3, sc(I32)));
    let l = ExprKind::LoopFor {
        acc: a,
        init: init.clone(),
        index: i,
        bound: Box::new(int(4)),
        body: Box::new(body),
    };
    let first = ex(sc(I32), ExprKind::Index(Box::new(xs()), Box::new(int(0))));
    gives(
        &[1],
        lazy(ExprKind::Let(v, Box::new(first.clone()), Box::new(ex(sc(I32), l))), I32),
        &[27],
    );
    let cond = op(ScalarOp::Lt, Bool, vec![var(4, sc(I32)), int(100)]);
    let body = op(ScalarOp::Mul, I32, vec![var(4, sc(I32)), int(3)]);
    let l = ExprKind::LoopWhile { acc: a, init, cond: Box::new(cond), body: Box::new(body) };
    gives(&[1], lazy(ExprKind::Let(v, Box::new(first), Box::new(ex(sc(I32), l))), I32), &[243]);
    // A loop over an array: `loop (ys = xs) for i < 3 do reverse ys`.
    let body = prim(Prim::Reverse, to(2), vec![], &[], vec![var(4, to(2))]);
    let l = ExprKind::LoopFor {
        acc: a,
        init: Box::new(xs()),
        index: i,
        bound: Box::new(int(3)),
        body: Box::new(body),
    };
    gives(&[1, 2], ex(to(2), l), &[2, 1]);
}

#[test]
fn iterations() {
    // Halves the array three times by summing pairs.
    let len = Size::iter_var(0);
    let half = len.div(&k(2));
    let (whole, row) = (arr(len, sc(I32)), arr(k(2), sc(I32)));
    let sum = prim(
        Prim::Reduce,
        sc(I32),
        vec![op2(ScalarOp::Add, I32)],
        &[],
        vec![int(0), var(11, row.clone())],
    );
    let rows = prim(
        Prim::Split,
        arr(half.clone(), row.clone()),
        vec![],
        &[2],
        vec![var(10, whole.clone())],
    );
    let body = prim(Prim::Map, arr(half, sc(I32)), vec![fun(&[(11, row)], sum)], &[], vec![rows]);
    let f = fun(&[(10, whole.clone())], body);
    for p in [Prim::Iterate, Prim::IterateSeq] {
        let it = |times, n| prim(p, to(n), vec![f.clone()], &[times], vec![xs()]);
        gives(&[1, 2, 3, 4, 5, 6, 7, 8], it(3, 1), &[36]);
        gives(&[1, 2, 3, 4], it(1, 2), &[3, 7]);
        gives(&[1, 2], it(0, 2), &[1, 2]);
        gives(&[], it(5, 0), &[]);
    }
    let inc = prim(
        Prim::Map,
        whole.clone(),
        vec![with(ScalarOp::Add, 1, I32)],
        &[],
        vec![var(10, whole.clone())],
    );
    let f = fun(&[(10, whole)], inc);
    gives(
        &[1, 2],
        prim(Prim::Iterate, to(2), vec![f], &[100_000], vec![xs()]),
        &[100_001, 100_002],
    );
}

#[test]
fn vectors() {
    let v = Type::Vector(k(2), I32);
    let twice = op(ScalarOp::Add, I32, vec![var(12, sc(I32)), var(12, sc(I32))]);
    let lanes = prim(
        Prim::Vectorize,
        v.clone(),
        vec![fun(&[(12, sc(I32))], twice)],
        &[2],
        vec![var(13, v.clone())],
    );
    let plus = ex(v.clone(), ExprKind::Scalar(ScalarOp::Add, vec![lanes, int(1)]));
    let vs = prim(Prim::AsVector, arr(k(2), v.clone()), vec![], &[2], vec![xs()]);
    let ws = prim(Prim::MapSeq, arr(k(2), v.clone()), vec![fun(&[(13, v)], plus)], &[], vec![vs]);
    gives(&[1, 2, 3, 4], prim(Prim::AsScalar, to(4), vec![], &[], vec![ws]), &[3, 5, 7, 9]);
}

#[test]
fn checks() {
    let mut e = entry(&[("xs", arr(n(), sc(I32)))], xs());
    e.divides.push((n(), k(4), Span::new(1, 2)));
    let code = |e: &Entry, s: &Sizes, v: &[Value]| run(e, s, v).unwrap_err().0[0].code;
    assert_eq!(code(&e, &sizes(3), &[ints(&[1, 2, 3])]), Error::NotDivisible);
    assert_eq!(code(&e, &sizes(4), &[ints(&[1, 2, 3])]), Error::InputShape);
    assert_eq!(code(&e, &sizes(4), &[Value::ints(I8, &[4], &[0; 4])]), Error::InputType);
    assert_eq!(code(&e, &sizes(4), &[]), Error::InputMissing);
    assert_eq!(code(&e, &Sizes::new(), &[ints(&[])]), Error::SizeUnknown);
    let huge = 1 << 61;
    let ones = || prim(Prim::Replicate, to(huge), vec![], &[huge], vec![int(1)]);
    let inc = prim(Prim::Map, to(huge), vec![with(ScalarOp::Add, 1, I32)], &[], vec![ones()]);
    let counted = prim(Prim::Iota, to(huge), vec![], &[huge], vec![]);
    for e in [ones(), inc, counted] {
        assert_eq!(on(&[], e).unwrap_err().0[0].code, Error::SizeRange);
    }
    let size = ex(sc(I32), ExprKind::Size(n()));
    gives(&[5, 5, 5], size, &[3]);
}

fn dot_of(xs: Expr, ys: Expr, n: Size) -> Expr {
    let products =
        prim(Prim::Map, arr(n, sc(F32)), vec![op2(ScalarOp::Mul, F32)], &[], vec![xs, ys]);
    prim(Prim::Reduce, sc(F32), vec![op2(ScalarOp::Add, F32)], &[], vec![float(0.0), products])
}

fn dot() -> Entry {
    let t = arr(n(), sc(F32));
    entry(&[("xs", t.clone()), ("ys", t.clone())], dot_of(var(0, t.clone()), var(1, t), n()))
}

#[test]
fn sums_accumulate_unrounded_and_know_what_cancelled() {
    let xs = Value::floats(F32, &[4], &[16_777_216.0, 1.0, 1.0, -16_777_216.0]);
    let ones = Value::floats(F32, &[4], &[1.0; 4]);
    let sum = run(&dot(), &sizes(4), &[xs, ones]).expect("the program has a value");
    assert_eq!(sum.to_floats(), [2.0]);
    assert!(compare(&sum, &[1f32.to_le_bytes()], terms(&dot(), &sizes(4))).ok);
    assert_eq!(terms(&dot(), &sizes(4)), 4);
    let third = on(&[], ex(sc(F32), ExprKind::Scalar(ScalarOp::Div, vec![float(1.0), float(3.0)])))
        .expect("the program has a value");
    assert_eq!(third.to_floats(), [f64::from(1.0f32 / 3.0)]);
}

/// `map2 (\row yi -> alpha * dot row x + beta * yi) A y`, square.
fn gemv() -> Entry {
    let row = arr(n(), sc(F32));
    let f = {
        let (s, t) = (|i| var(i, sc(F32)), row.clone());
        let left =
            op(ScalarOp::Mul, F32, vec![s(3), dot_of(var(20, t.clone()), var(1, t.clone()), n())]);
        let right = op(ScalarOp::Mul, F32, vec![s(4), s(21)]);
        fun(&[(20, t), (21, sc(F32))], op(ScalarOp::Add, F32, vec![left, right]))
    };
    let a = arr(n(), row.clone());
    let body =
        prim(Prim::Map, row.clone(), vec![f], &[], vec![var(0, a.clone()), var(2, row.clone())]);
    entry(&[("A", a), ("x", row.clone()), ("y", row), ("alpha", sc(F32)), ("beta", sc(F32))], body)
}

fn gemv_inputs(n: usize) -> Vec<Value> {
    let scalar = |x| Value::scalar(F32, Cell::float(F32, x));
    let a: Vec<f64> = (0..n * n).map(|i| (i % 7) as f64).collect();
    let x = vec![1.0; n];
    vec![
        Value::floats(F32, &[n, n], &a),
        Value::floats(F32, &[n], &x),
        Value::floats(F32, &[n], &x),
        scalar(2.0),
        scalar(0.5),
    ]
}

#[test]
fn gemv_of_three() {
    let y = run(&gemv(), &sizes(3), &gemv_inputs(3)).expect("the program has a value");
    assert_eq!(y.to_floats(), [6.5, 24.5, 14.5]);
}
