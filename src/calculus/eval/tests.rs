use super::*;
use crate::calculus::scalar::Lit;
use crate::calculus::size::Sym;
use crate::calculus::term::{MapKind, ReduceKind, ScanKind, Space};
use ScalarType::{Bool, F32, I32};

fn n(k: u64) -> Size {
    Size::constant(k)
}

fn int() -> Ty {
    Ty::Scalar(I32)
}

fn float() -> Ty {
    Ty::Scalar(F32)
}

fn term(op: Op, sizes: &[u64], tys: &[Ty], args: &[Term]) -> Term {
    let sizes = sizes.iter().map(|k| n(*k)).collect();
    Term::new(op, sizes, tys.to_vec(), args.to_vec()).expect("the term is well-typed")
}

fn ints(xs: &[i64]) -> Value {
    Value::ints(I32, &[xs.len()], xs)
}

fn run(t: &Term, arg: &Value) -> Result<Value> {
    apply(t, &SizeEnv::default(), &Inputs::new(), arg)
}

fn op2(op: ScalarOp, t: ScalarType) -> Term {
    Term::scalar(ScalarFn::binary(op, t, t))
}

fn lit(x: i128) -> Term {
    term(Op::Lit(Lit::int(I32, x)), &[], &[Ty::Unit], &[])
}

/// `\x -> x op k` on `i32`.
fn with(op: ScalarOp, k: i128, result: ScalarType) -> Term {
    let body = SExpr::Op(op, result, vec![SExpr::Arg, SExpr::Lit(Lit::int(I32, k))]);
    Term::scalar(ScalarFn { dom: int(), cod: Ty::Scalar(result), body })
}

fn given(t: &Term, arg: &Value, want: &[i128]) {
    assert_eq!(run(t, arg).expect("the term has a value").to_ints(), want, "{:?}", t.op());
}

#[test]
fn views() {
    let x = ints(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let six = ints(&[0, 1, 2, 3, 4, 5]);
    let i = &[int()][..];
    given(&term(Op::Stride, &[4, 2], i, &[]), &x, &[0, 4, 1, 5, 2, 6, 3, 7]);
    given(&term(Op::Reorder, &[8], i, &[]), &x, &[0, 1, 2, 3, 4, 5, 6, 7]);
    given(&term(Op::Take, &[2, 8], i, &[]), &x, &[0, 1]);
    given(&term(Op::Drop, &[3, 8], i, &[]), &x, &[5, 6, 7]);
    given(&term(Op::Reverse, &[6], i, &[]), &six, &[5, 4, 3, 2, 1, 0]);
    given(&term(Op::Rotate, &[2, 6], i, &[]), &six, &[2, 3, 4, 5, 0, 1]);
    given(&term(Op::Slide, &[3, 2, 8, 3], i, &[]), &x, &[0, 1, 2, 2, 3, 4, 4, 5, 6]);
    given(&term(Op::PadLast, &[6, 8], i, &[]), &six, &[0, 1, 2, 3, 4, 5, 5, 5]);
    given(&term(Op::PadTo, &[6, 8], &[], &[lit(9)]), &six, &[0, 1, 2, 3, 4, 5, 9, 9]);
    given(
        &term(Op::Pad(PadMode::Constant), &[1, 6, 8], i, &[lit(9)]),
        &six,
        &[9, 0, 1, 2, 3, 4, 5, 9],
    );
    given(&term(Op::Pad(PadMode::Mirror), &[1, 6, 8], i, &[]), &six, &[0, 0, 1, 2, 3, 4, 5, 5]);
    given(&term(Op::PadLast, &[0, 0], i, &[]), &ints(&[]), &[]);
    // Units have no cells, but there are as many of them as the type says.
    let bangs = term(Op::Map(MapKind::Plain), &[6], &[], &[term(Op::Bang, &[], i, &[])]);
    let padded = term(Op::PadLast, &[6, 8], &[Ty::Unit], &[]).after(&bangs);
    let sevens = term(Op::Map(MapKind::Plain), &[8], &[], &[lit(7)]);
    let sevens = sevens.after(&padded.expect("the types meet")).expect("the types meet");
    given(&sevens, &six, &[7; 8]);
    let split = term(Op::Split, &[2, 3], i, &[]);
    given(
        &term(Op::Join, &[2, 3], i, &[]).after(&split).expect("the types meet"),
        &six,
        &[0, 1, 2, 3, 4, 5],
    );
    let t = term(Op::Transpose, &[3, 2], i, &[]);
    given(&t.after(&split).expect("the types meet"), &six, &[0, 2, 4, 1, 3, 5]);
    let back = term(Op::Transpose, &[2, 3], i, &[]);
    given(
        &back.after(&t).expect("the types meet").after(&split).expect("the types meet"),
        &six,
        &[0, 1, 2, 3, 4, 5],
    );
    given(&term(Op::Iota, &[3], &[Ty::Unit, int()], &[]), &Value::unit(), &[0, 1, 2]);
    given(&term(Op::Replicate, &[2], &[int()], &[]), &Value::ints(I32, &[], &[4]), &[4, 4]);
    given(&term(Op::The, &[], i, &[]), &ints(&[4]), &[4]);
    given(&term(Op::Wrap, &[], i, &[]), &Value::ints(I32, &[], &[4]), &[4]);
    let both = Value::tuple([ints(&[1, 2]), ints(&[3])]);
    given(&term(Op::Concat, &[2, 1, 3], i, &[]), &both, &[1, 2, 3]);
    assert_eq!(run(&split, &x).unwrap_err().0[0].code, Error::InputShape);
}

#[test]
fn pairs() {
    let ii = [int(), int()];
    let both = Value::tuple([ints(&[1, 2]), ints(&[5, 6, 7])]);
    let cross = run(&term(Op::Cross, &[2, 3], &ii, &[]), &both).expect("the term has a value");
    assert_eq!(cross.to_ints(), [1, 1, 1, 2, 2, 2, 5, 6, 7, 5, 6, 7]);
    let one = Value::ints(I32, &[], &[9]);
    let distl = term(Op::Distl, &[2], &ii, &[]);
    given(&distl, &Value::tuple([one.clone(), ints(&[1, 2])]), &[9, 9, 1, 2]);
    let distr = term(Op::Distr, &[2], &ii, &[]);
    given(&distr, &Value::tuple([ints(&[1, 2]), one.clone()]), &[1, 2, 9, 9]);
    let add = op2(ScalarOp::Add, I32);
    let zip = term(Op::Zip, &[2], &ii, &[]);
    let sums = term(Op::Map(MapKind::Plain), &[2], &[], std::slice::from_ref(&add))
        .after(&zip)
        .expect("the types meet");
    given(&sums, &Value::tuple([ints(&[1, 2]), ints(&[5, 6])]), &[6, 8]);
    let inc = with(ScalarOp::Add, 1, I32);
    let fork = term(Op::Fork, &[], &[], &[inc.clone(), with(ScalarOp::Mul, 3, I32)]);
    given(&fork.clone(), &one, &[10, 27]);
    given(&add.after(&fork).expect("the types meet"), &one, &[37]);
    let bimap = term(Op::Bimap, &[], &[], &[inc.clone(), Term::id(&int())]);
    given(&bimap, &Value::tuple([one.clone(), one.clone()]), &[10, 9]);
    let triple = Ty::pair(&int(), &Ty::pair(&int(), &int()));
    let second = term(Op::Fst, &[], &[int(), int()], &[])
        .after(&term(Op::Snd, &[], &[int(), Ty::pair(&int(), &int())], &[]))
        .expect("the types meet");
    assert_eq!(second.ty().dom, triple);
    let flat = Value::tuple([one, Value::ints(I32, &[], &[8]), Value::ints(I32, &[], &[7])]);
    given(&second, &flat, &[8]);
    let cond =
        term(Op::Cond, &[], &[], &[with(ScalarOp::Lt, 5, Bool), inc, with(ScalarOp::Div, 0, I32)]);
    given(&cond, &Value::ints(I32, &[], &[4]), &[5]);
    assert!(run(&cond, &Value::ints(I32, &[], &[6])).is_err());
}

#[test]
fn reductions() {
    let x = ints(&[1, 2, 3, 4]);
    let args = [op2(ScalarOp::Add, I32), lit(0)];
    given(&term(Op::Reduce(ReduceKind::Assoc), &[4], &[], &args), &x, &[10]);
    given(&term(Op::ReducePart, &[2, 2], &[], &args), &x, &[3, 7]);
    given(&term(Op::Scan(ScanKind::Assoc), &[4], &[], &args), &x, &[1, 3, 6, 10]);
    let minus = [op2(ScalarOp::Sub, I32), lit(0)];
    given(&term(Op::Reduce(ReduceKind::Seq), &[4], &[], &minus), &x, &[-10]);
    given(&term(Op::Reduce(ReduceKind::Comm), &[0], &[], &args), &ints(&[]), &[0]);
    let bins = Value::tuple([ints(&[0, 2, 0, 7]), x]);
    given(&term(Op::Histogram, &[3, 4], &[int()], &args), &bins, &[4, 0, 2]);
    // The accumulator is an array.
    let zip = term(Op::Zip, &[2], &[int(), int()], &[]);
    let rows = term(Op::Map(MapKind::Seq), &[2], &[], &[op2(ScalarOp::Add, I32)])
        .after(&zip)
        .expect("the types meet");
    let zeros = term(Op::Replicate, &[2], &[int()], &[]).after(&lit(0)).expect("the types meet");
    let m = Value::ints(I32, &[3, 2], &[1, 2, 3, 4, 5, 6]);
    given(
        &term(Op::Reduce(ReduceKind::Assoc), &[3], &[], &[rows.clone(), zeros.clone()]),
        &m,
        &[9, 12],
    );
    given(&term(Op::Scan(ScanKind::Seq), &[3], &[], &[rows, zeros]), &m, &[1, 2, 4, 6, 9, 12]);
}

#[test]
fn indices() {
    let tys = [int(), int()];
    let gather = term(Op::Gather, &[3, 2], &tys, &[]);
    given(&gather, &Value::tuple([ints(&[7, 8, 9]), ints(&[2, 0])]), &[9, 7]);
    let outside = run(&gather, &Value::tuple([ints(&[7, 8, 9]), ints(&[2, -1])])).unwrap_err();
    assert_eq!(
        outside.to_string(),
        "E0505: `gather`: index -1 (at 1) is outside an array of 3 elements"
    );
    let scatter = term(Op::Scatter, &[3, 2], &tys, &[]);
    let updates = |is: &[i64]| Value::tuple([ints(&[7, 8, 9]), ints(is), ints(&[1, 2])]);
    given(&scatter, &updates(&[2, 5]), &[7, 8, 1]);
    assert!(
        run(&scatter, &updates(&[2, 2]))
            .unwrap_err()
            .to_string()
            .contains("two values go to index 2")
    );
    let index = term(Op::Index, &[3], &tys, &[]);
    let at = |i: i64| Value::tuple([ints(&[7, 8, 9]), Value::ints(I32, &[], &[i])]);
    given(&index, &at(1), &[8]);
    assert_eq!(run(&index, &at(3)).unwrap_err().0[0].code, Error::Eval);
}

#[test]
fn vectors() {
    let as_vector = term(Op::AsVector, &[4, 2], &[int()], &[]);
    let inc = term(Op::Vectorize, &[4], &[], &[with(ScalarOp::Add, 1, I32)]);
    let inc = term(Op::Map(MapKind::Glb(0)), &[2], &[], &[inc]);
    let t = term(Op::AsScalar, &[4, 2], &[int()], &[])
        .after(&inc)
        .expect("the types meet")
        .after(&as_vector)
        .expect("the types meet");
    for space in [Space::Local, Space::LocalAhead] {
        let t = term(Op::ToMem(space), &[], &[], std::slice::from_ref(&t));
        given(&t, &ints(&[0, 1, 2, 3, 4, 5, 6, 7]), &[1, 2, 3, 4, 5, 6, 7, 8]);
    }
    given(&term(Op::Splat, &[4], &[int()], &[]), &Value::ints(I32, &[], &[3]), &[3, 3, 3, 3]);
}

#[test]
fn leaves() {
    // for i < 4: (a, b) = (b, a + b) from (0, 1), then a
    let acc = Ty::pair(&int(), &int());
    let var = |l: u32, t: Ty| SExpr::Var(l, t);
    let a = || var(1, acc.clone()).proj(false);
    let b = || var(1, acc.clone()).proj(true);
    let one = || SExpr::Lit(Lit::int(I32, 1));
    let body = SExpr::pair(b(), SExpr::Op(ScalarOp::Add, I32, vec![a(), b()]));
    let first = SExpr::pair(SExpr::Lit(Lit::int(I32, 0)), one());
    let fib = SExpr::For(Arc::new(first), Arc::new(SExpr::Arg), Arc::new(body)).proj(false);
    let fib = Term::scalar(ScalarFn { dom: int(), cod: int(), body: fib });
    given(&fib, &Value::ints(I32, &[], &[7]), &[13]);
    // let s = arg * arg in while acc < s: acc + acc
    let s = SExpr::Op(ScalarOp::Mul, I32, vec![SExpr::Arg, SExpr::Arg]);
    let cond = SExpr::Op(ScalarOp::Lt, Bool, vec![var(1, int()), var(0, int())]);
    let twice = SExpr::Op(ScalarOp::Add, I32, vec![var(1, int()), var(1, int())]);
    let power = SExpr::While(Arc::new(one()), Arc::new(cond), Arc::new(twice));
    let power = SExpr::Let(Arc::new(s), Arc::new(power));
    let power = Term::scalar(ScalarFn { dom: int(), cod: int(), body: power });
    given(&power, &Value::ints(I32, &[], &[5]), &[32]);
}

#[test]
fn inputs_and_sizes() {
    let size = Size::dim("n");
    let t = Ty::array(&size, &float());
    let env = SizeEnv::from_iter([(Sym::Dim("n".into()), 2)]);
    let input = Term::new(Op::Input("x".into()), vec![], vec![Ty::Unit, t], vec![])
        .expect("the term is well-typed");
    let x = Value::floats(F32, &[2], &[0.1, 2.0]);
    let inputs = Inputs::from_iter([("x".into(), x.clone())]);
    assert_eq!(apply(&input, &env, &inputs, &Value::unit()).expect("the term has a value"), x);
    let code = |r: Result<Value>| r.unwrap_err().0[0].code;
    assert_eq!(code(apply(&input, &env, &Inputs::new(), &Value::unit())), Error::InputMissing);
    assert_eq!(code(run(&input, &Value::unit())), Error::SizeUnknown);
    let value = Term::new(Op::SizeValue(I32), vec![size], vec![Ty::Unit], vec![])
        .expect("the term is well-typed");
    assert_eq!(
        apply(&value, &env, &inputs, &Value::unit()).expect("the term has a value").to_ints(),
        [2]
    );
}

#[test]
fn rounding() {
    let zero = term(Op::Lit(Lit::float(F32, 0.0)), &[], &[Ty::Unit], &[]);
    let sum = term(Op::Reduce(ReduceKind::Assoc), &[3], &[], &[op2(ScalarOp::Add, F32), zero]);
    let x = Value::floats(F32, &[3], &[16_777_216.0, 1.0, 1.0]);
    assert_eq!(run(&sum, &x).expect("the term has a value").to_floats(), [16_777_218.0]);
    let pair = Value::tuple([x.row(0), x.row(1)]);
    assert_eq!(
        run(&op2(ScalarOp::Add, F32), &pair).expect("the term has a value").to_floats(),
        [16_777_216.0]
    );
}

/// 1 Mi elements; `cargo test --release -- --ignored` times 16 Mi.
fn asum(count: usize) -> f64 {
    let k = u64::try_from(count).expect("a count is not negative");
    let abs = SExpr::Op(ScalarOp::Abs, F32, vec![SExpr::Arg]);
    let abs = Term::scalar(ScalarFn { dom: float(), cod: float(), body: abs });
    let zero = term(Op::Lit(Lit::float(F32, 0.0)), &[], &[Ty::Unit], &[]);
    let t = term(Op::Reduce(ReduceKind::Assoc), &[k], &[], &[op2(ScalarOp::Add, F32), zero])
        .after(&term(Op::Map(MapKind::Plain), &[k], &[], &[abs]))
        .expect("the types meet");
    let x = Value::floats(F32, &[count], &vec![-1.0; count]);
    run(&t, &x).expect("the term has a value").to_floats()[0]
}

#[test]
fn asum_of_a_million() {
    assert_eq!(asum(1 << 20), f64::from(1 << 20));
}
