//! Compares the results of generated kernels with the reference evaluator.

use super::{print, products};
use crate::calculus::eval;
use crate::calculus::op::products::Products;
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, ReduceKind, ScanKind, Space, Term};
use crate::calculus::ty::Ty;

use crate::calculus::value::{Value, compare};
use crate::diag::Limits;
use crate::kernel::{DeviceLimits, Options, lower};
use crate::lang::typed::{PadMode, ScalarOp};
use crate::lang::types::ScalarType;
use crate::opencl::host::{HostArray, Inputs};
use crate::opencl::plan::HostPlan;
use crate::opencl::runtime::Runtime;
use std::sync::Arc;

mod together;

const F32: ScalarType = ScalarType::F32;

fn c(n: u64) -> Size {
    Size::constant(n)
}

fn f32s() -> Ty {
    Ty::Scalar(F32)
}

fn arr(n: u64, t: &Ty) -> Ty {
    Ty::array(&c(n), t)
}

fn term(op: Op, sizes: &[u64], tys: &[Ty], args: &[Term]) -> Term {
    let sizes = sizes.iter().map(|n| c(*n)).collect();
    Term::new(op, sizes, tys.to_vec(), args.to_vec()).expect("the term is well-typed")
}

/// Composes terms, outermost first.
fn seq(terms: &[Term]) -> Term {
    let (last, rest) = terms.split_last().expect("there is a last one");
    rest.iter().rev().fold(last.clone(), |g, f| f.after(&g).expect("the types meet"))
}

fn input(name: &str, t: &Ty) -> Term {
    term(Op::Input(name.into()), &[], &[Ty::Unit, t.clone()], &[])
}

fn map(kind: MapKind, n: u64, f: &Term) -> Term {
    term(Op::Map(kind), &[n], &[], std::slice::from_ref(f))
}

fn leaf(dom: &Ty, cod: &Ty, body: SExpr) -> Term {
    Term::scalar(ScalarFn { dom: dom.clone(), cod: cod.clone(), body })
}

fn op2(op: ScalarOp) -> Term {
    Term::scalar(ScalarFn::binary(op, F32, F32))
}

fn op1(op: ScalarOp) -> Term {
    leaf(&f32s(), &f32s(), SExpr::Op(op, F32, vec![SExpr::Arg]))
}

fn lit(x: f64) -> Term {
    term(Op::Lit(Lit::float(F32, x)), &[], &[Ty::Unit], &[])
}

/// `\(acc, x) -> acc + abs x`
fn add_abs() -> Term {
    let x = SExpr::Op(ScalarOp::Abs, F32, vec![SExpr::Arg.proj(true)]);
    let body = SExpr::Op(ScalarOp::Add, F32, vec![SExpr::Arg.proj(false), x]);
    leaf(&Ty::pair(&f32s(), &f32s()), &f32s(), body)
}

fn vectorize(w: u64, f: &Term) -> Term {
    term(Op::Vectorize, &[w], &[], std::slice::from_ref(f))
}

fn reduce_seq(n: u64, op: &Term, z: &Term) -> Term {
    term(Op::Reduce(ReduceKind::Seq), &[n], &[], &[op.clone(), z.clone()])
}

fn to(space: Space, f: &Term) -> Term {
    term(Op::ToMem(space), &[], &[], std::slice::from_ref(f))
}

fn random(n: u64) -> Vec<f64> {
    let mut s = 12345u64;
    (0..n)
        .map(|_| {
            s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((((s >> 40) as f32) / 16_777_216.0) - 0.5)
        })
        .collect()
}

fn floats(dims: &[u64]) -> Value {
    let dims: Vec<usize> = dims.iter().map(|d| usize::try_from(*d).expect("small")).collect();
    Value::floats(F32, &dims, &random(dims.iter().product::<usize>() as u64))
}

fn plan(t: &Term) -> HostPlan {
    plan_with(t, &SizeEnv::default())
}

fn plan_with(t: &Term, env: &SizeEnv) -> HostPlan {
    let device = DeviceLimits {
        max_work_group_size: 1024,
        max_item_sizes: [1024; 3],
        compute_units: 2,
        ..DeviceLimits::default()
    };
    let options = Options::new("test", device, &Limits::default());
    print(&lower(t, env, &options).expect("the term can be lowered"))
}

/// Runs the term on the default device and compares the result with the evaluator's. Returns the host plan.
fn check(t: &Term, inputs: &[(&str, Value)]) -> HostPlan {
    check_with(t, &SizeEnv::default(), inputs)
}

/// As [`check`], with values for symbols.
fn check_with(t: &Term, env: &SizeEnv, inputs: &[(&str, Value)]) -> HostPlan {
    let plan = plan_with(t, env);
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{}\n{:?}", plan.source, plan.launches);
    }
    let named = inputs.iter().map(|(n, v)| (Arc::from(*n), v.clone())).collect();
    let expected = eval::apply(t, env, &named, &Value::unit()).expect("the term has a value");
    let mut given = Inputs::default();
    for (name, v) in inputs {
        for (k, (ty, bytes)) in v.components().into_iter().enumerate() {
            given.insert(
                *name,
                k,
                HostArray::from_bytes(ty, bytes).expect("the bytes are as many as the type needs"),
            );
        }
    }
    let rt = Runtime::open(None).expect("there is a device");
    let uploaded = rt.upload(&given).expect("the inputs fit the device");
    let built = match rt.build(&Arc::new(plan.clone())) {
        Ok(b) => b,
        Err(e) => panic!("{e}\n{}", plan.source),
    };
    let (_, outputs) = rt
        .prepare(built, &uploaded)
        .expect("the buffers fit the device")
        .check(&rt)
        .expect("the kernel runs");
    let bytes: Vec<&[u8]> = outputs.iter().map(HostArray::bytes).collect();
    let result = compare(&expected, &bytes, 1 << 20);
    assert!(result.ok, "{result:?}\n{}", plan.source);
    plan
}

/// `map (\x -> 3 * x)` over vectors of width `w`, which divides `n`.
fn scal(n: u64, w: u64) -> Term {
    let body = SExpr::Op(ScalarOp::Mul, F32, vec![SExpr::Input("a".into(), 0, F32), SExpr::Arg]);
    let f = vectorize(w, &leaf(&f32s(), &f32s(), body));
    seq(&[
        term(Op::AsScalar, &[w, n / w], &[f32s()], &[]),
        map(MapKind::Glb(0), n / w, &f),
        term(Op::AsVector, &[w, n / w], &[f32s()], &[]),
        input("x", &arr(n, &f32s())),
    ])
}

/// A function is defined if a kernel calls it, not if an input has its name.
#[test]
fn an_input_may_have_the_name_of_a_function() {
    for name in [products::function(Products::F32), "add_products2", "pow_i32"] {
        let f = map(MapKind::Glb(0), 4, &op1(ScalarOp::Abs));
        let plan = check(&seq(&[f, input(name, &arr(4, &f32s()))]), &[(name, floats(&[4]))]);
        assert!(!plan.source.contains("asm"), "{}", plan.source);
    }
}

#[test]
fn scal_runs() {
    for n in [4, 128, 4096] {
        let a = Value::floats(F32, &[], &[3.0]);
        check(&scal(n, 4), &[("x", floats(&[n])), ("a", a)]);
    }
}

/// `reduceSeq (+) . mapGlb (reduceSeq (+) . asScalar . reduceSeq abs+ . split . asVector) . split`: `groups`
/// work-items, `u` accumulators of vectors of width `w`.
fn asum_cpu(groups: u64, m: u64, u: u64, w: u64) -> Term {
    let v = Ty::vector(&c(w), &f32s()).expect("a vector of numbers");
    let each = m * u * w;
    let accumulators = seq(&[
        term(Op::Replicate, &[u], std::slice::from_ref(&v), &[]),
        term(Op::Splat, &[w], &[f32s()], &[]),
        lit(0.0),
    ]);
    let step = seq(&[
        map(MapKind::Unroll, u, &vectorize(w, &add_abs())),
        term(Op::Zip, &[u], &[v.clone(), v.clone()], &[]),
    ]);
    let plus = op2(ScalarOp::Add);
    let item = seq(&[
        reduce_seq(u * w, &plus, &lit(0.0)),
        term(Op::AsScalar, &[w, u], &[f32s()], &[]),
        reduce_seq(m, &step, &accumulators),
        term(Op::Split, &[u, m], &[v], &[]),
        term(Op::AsVector, &[w, m * u], &[f32s()], &[]),
    ]);
    seq(&[
        reduce_seq(groups, &plus, &lit(0.0)),
        map(MapKind::Glb(0), groups, &item),
        term(Op::Split, &[each, groups], &[f32s()], &[]),
        input("x", &arr(each * groups, &f32s())),
    ])
}

#[test]
fn asum_in_chunks() {
    let p = check(&asum_cpu(8, 64, 4, 16), &[("x", floats(&[8 * 64 * 64]))]);
    assert_eq!(p.launches.len(), 2);
    check(&asum_cpu(1, 1, 1, 4), &[("x", floats(&[4]))]);
}

/// `reduceSeq (+) . mapWrg (reduceSeq (+) . toLocal (mapLcl (reduceSeq abs+)) . transpose . split) . split`
fn asum_gpu(groups: u64, items: u64, m: u64) -> Term {
    let plus = op2(ScalarOp::Add);
    let group = seq(&[
        reduce_seq(items, &plus, &lit(0.0)),
        to(Space::Local, &map(MapKind::Lcl(0), items, &reduce_seq(m, &add_abs(), &lit(0.0)))),
        term(Op::Transpose, &[m, items], &[f32s()], &[]),
        term(Op::Split, &[items, m], &[f32s()], &[]),
    ]);
    seq(&[
        reduce_seq(groups, &plus, &lit(0.0)),
        map(MapKind::Wrg(0), groups, &group),
        term(Op::Split, &[items * m, groups], &[f32s()], &[]),
        input("x", &arr(groups * items * m, &f32s())),
    ])
}

#[test]
fn asum_in_groups() {
    let p = check(&asum_gpu(16, 64, 32), &[("x", floats(&[16 * 64 * 32]))]);
    assert_eq!(p.source.matches("barrier(").count(), 1);
}

fn up(n: u64, k: u64) -> u64 {
    n.div_ceil(k) * k
}

/// `take n . asScalar . mapGlb (a *) . asVector w . padLast`
fn scal_padded(n: u64, w: u64) -> Term {
    let r = up(n, w);
    let body = SExpr::Op(ScalarOp::Mul, F32, vec![SExpr::Input("a".into(), 0, F32), SExpr::Arg]);
    let f = vectorize(w, &leaf(&f32s(), &f32s(), body));
    seq(&[
        term(Op::Take, &[n, r], &[f32s()], &[]),
        term(Op::AsScalar, &[w, r / w], &[f32s()], &[]),
        map(MapKind::Glb(0), r / w, &f),
        term(Op::AsVector, &[w, r / w], &[f32s()], &[]),
        term(Op::PadLast, &[n, r], &[f32s()], &[]),
        input("x", &arr(n, &f32s())),
    ])
}

/// The sum of `n` absolute values, by `groups` work-items over vectors of width `w`, padded with 0.
fn asum_padded(n: u64, groups: u64, u: u64, w: u64) -> Term {
    let r = up(n, groups * u * w);
    let whole = asum_cpu(groups, r / (groups * u * w), u, w);
    let mut chain = whole.chain();
    chain.pop();
    chain.push(term(Op::PadTo, &[n, r], &[], &[lit(0.0)]));
    chain.push(input("x", &arr(n, &f32s())));
    seq(&chain)
}

#[test]
fn sizes_that_do_not_divide() {
    for n in [0, 1, 3, 127, 4096, 1_000_003] {
        let a = Value::floats(F32, &[], &[3.0]);
        let p = check(&scal_padded(n, 4), &[("x", floats(&[n])), ("a", a)]);
        assert!(n != 4096 || !p.source.contains("if ("), "{}", p.source);
        check(&asum_padded(n, 8, 4, 16), &[("x", floats(&[n]))]);
    }
}

#[test]
fn guards_leave_the_inner_loop() {
    let p = plan(&asum_padded(1_000_003, 8, 4, 16));
    let main = p
        .source
        .split("for (")
        .nth(1)
        .expect("there is a loop")
        .split('}')
        .next()
        .expect("a part is there");
    assert!(!main.contains('?') && !main.contains("if"), "{}", p.source);
}

fn pairs(a: &Ty, b: &Ty) -> Ty {
    Ty::pair(a, b)
}

/// `acc + x * y` on `(acc, (x, y))`.
fn multiply_add() -> Term {
    let (x, y) = (SExpr::Arg.proj(true).proj(false), SExpr::Arg.proj(true).proj(true));
    let product = SExpr::Op(ScalarOp::Mul, F32, vec![x, y]);
    let sum = SExpr::Op(ScalarOp::Add, F32, vec![SExpr::Arg.proj(false), product]);
    leaf(&pairs(&f32s(), &pairs(&f32s(), &f32s())), &f32s(), sum)
}

/// One work-item for each row: `mapGlb (reduceSeq . zip) . distr` over `(A, x)`.
fn gemv(n: u64, m: u64) -> Term {
    let row = arr(m, &f32s());
    let f = seq(&[
        reduce_seq(m, &multiply_add(), &lit(0.0)),
        term(Op::Zip, &[m], &[f32s(), f32s()], &[]),
    ]);
    seq(&[
        map(MapKind::Glb(0), n, &f),
        term(Op::Distr, &[n], &[row.clone(), row.clone()], &[]),
        term(Op::Fork, &[], &[], &[input("A", &arr(n, &row)), input("x", &row)]),
    ])
}

#[test]
fn gemv_runs() {
    check(&gemv(33, 65), &[("A", floats(&[33, 65])), ("x", floats(&[65]))]);
}

#[test]
fn transposes() {
    let t = |n, m| term(Op::Transpose, &[n, m], &[f32s()], &[]);
    let x = input("x", &arr(12, &arr(20, &f32s())));
    // A pure view, which is copied in parallel.
    check(&seq(&[t(12, 20), x.clone()]), &[("x", floats(&[12, 20]))]);
    // A transpose that moves into the destination of the store.
    let abs = op1(ScalarOp::Abs);
    let rows = map(MapKind::Glb(1), 12, &map(MapKind::Glb(0), 20, &abs));
    let p = check(&seq(&[t(12, 20), rows, x.clone()]), &[("x", floats(&[12, 20]))]);
    assert_eq!(p.launches.len(), 1);
    // A transpose in tiles through local memory: both reads and writes are contiguous along dimension 0.
    let id = Term::id(&f32s());
    let copy = |a, b| map(MapKind::Lcl(1), a, &map(MapKind::Lcl(0), b, &id));
    let tile = seq(&[copy(5, 4), t(4, 5), to(Space::Local, &copy(4, 5))]);
    let row = arr(20, &f32s());
    let tiles = seq(&[
        map(MapKind::Plain, 3, &term(Op::Transpose, &[4, 4], &[arr(5, &f32s())], &[])),
        map(MapKind::Plain, 3, &map(MapKind::Plain, 4, &term(Op::Split, &[5, 4], &[f32s()], &[]))),
        term(Op::Split, &[4, 3], &[row], &[]),
        x,
    ]);
    let f = seq(&[map(MapKind::Wrg(1), 3, &map(MapKind::Wrg(0), 4, &tile)), tiles]);
    let p = check(&f, &[("x", floats(&[12, 20]))]);
    assert_eq!(p.source.matches("barrier(").count(), 1, "{}", p.source);
}

/// A matrix product with tiles in local memory and accumulators in private memory.
fn tiled(n: u64, m: u64, k: u64, t: u64, kt: u64) -> Term {
    let s = f32s();
    let (row, tk) = (arr(t, &s), arr(kt, &s));
    let id = Term::id(&s);
    let stage = |a, b| to(Space::Local, &map(MapKind::Lcl(1), a, &map(MapKind::Lcl(0), b, &id)));
    let dot = multiply_add();
    // (acc, (arow, bcol)) -> acc + sum
    let inner = seq(&[
        op2(ScalarOp::Add),
        term(
            Op::Bimap,
            &[],
            &[],
            &[
                Term::id(&s),
                seq(&[
                    reduce_seq(kt, &dot, &lit(0.0)),
                    term(Op::Zip, &[kt], &[s.clone(), s.clone()], &[]),
                ]),
            ],
        ),
    ]);
    let cell = pairs(&tk, &tk);
    let spread = to(
        Space::Private,
        &map(
            MapKind::Lcl(1),
            t,
            &seq(&[
                map(MapKind::Lcl(0), t, &inner),
                term(Op::Zip, &[t], &[s.clone(), cell.clone()], &[]),
            ]),
        ),
    );
    // (acc, (atile [t][kt], btile [kt][t]))
    let step = seq(&[
        spread,
        term(Op::Zip, &[t], &[row.clone(), arr(t, &cell)], &[]),
        term(
            Op::Bimap,
            &[],
            &[],
            &[
                Term::id(&arr(t, &row)),
                seq(&[
                    term(Op::Cross, &[t, t], &[tk.clone(), tk.clone()], &[]),
                    term(
                        Op::Bimap,
                        &[],
                        &[],
                        &[
                            stage(t, kt),
                            seq(&[
                                term(Op::Transpose, &[kt, t], std::slice::from_ref(&s), &[]),
                                stage(kt, t),
                            ]),
                        ],
                    ),
                ]),
            ],
        ),
    ]);
    let zero = seq(&[
        term(Op::Replicate, &[t], std::slice::from_ref(&row), &[]),
        term(Op::Replicate, &[t], std::slice::from_ref(&s), &[]),
        lit(0.0),
    ]);
    let (ab, bb) = (arr(t, &tk), arr(kt, &row));
    let group = seq(&[
        map(MapKind::Lcl(1), t, &map(MapKind::Lcl(0), t, &id)),
        reduce_seq(k / kt, &step, &zero),
        term(Op::Zip, &[k / kt], &[ab.clone(), bb.clone()], &[]),
    ]);
    let (arows, bcols) = (arr(k / kt, &ab), arr(k / kt, &bb));
    // A -> [n/t][k/kt][t][kt]
    let atiles = seq(&[
        map(
            MapKind::Plain,
            n / t,
            &term(Op::Transpose, &[t, k / kt], std::slice::from_ref(&tk), &[]),
        ),
        map(
            MapKind::Plain,
            n / t,
            &map(MapKind::Plain, t, &term(Op::Split, &[kt, k / kt], std::slice::from_ref(&s), &[])),
        ),
        term(Op::Split, &[t, n / t], &[arr(k, &s)], &[]),
        input("A", &arr(n, &arr(k, &s))),
    ]);
    // B -> [m/t][k/kt][kt][t]
    let btiles = seq(&[
        map(
            MapKind::Plain,
            m / t,
            &term(Op::Split, &[kt, k / kt], std::slice::from_ref(&row), &[]),
        ),
        term(Op::Transpose, &[k, m / t], std::slice::from_ref(&row), &[]),
        map(MapKind::Plain, k, &term(Op::Split, &[t, m / t], std::slice::from_ref(&s), &[])),
        input("B", &arr(k, &arr(m, &s))),
    ]);
    seq(&[
        term(Op::Join, &[t, n / t], &[arr(m, &s)], &[]),
        map(
            MapKind::Plain,
            n / t,
            &seq(&[
                map(MapKind::Plain, t, &term(Op::Join, &[t, m / t], std::slice::from_ref(&s), &[])),
                term(Op::Transpose, &[m / t, t], std::slice::from_ref(&row), &[]),
            ]),
        ),
        map(MapKind::Wrg(1), n / t, &map(MapKind::Wrg(0), m / t, &group)),
        term(Op::Cross, &[n / t, m / t], &[arows, bcols], &[]),
        term(Op::Fork, &[], &[], &[atiles, btiles]),
    ])
}

#[test]
fn tiled_matrix_product() {
    let p = check(&tiled(32, 16, 24, 8, 4), &[("A", floats(&[32, 24])), ("B", floats(&[24, 16]))]);
    assert_eq!(p.source.matches("barrier(").count(), 2, "{}", p.source);
    assert_eq!(p.launches[0].local, [8, 8, 1]);
}

#[test]
fn stencils_and_pads() {
    let n = 50;
    for mode in [PadMode::Clamp, PadMode::Wrap, PadMode::Mirror, PadMode::Constant] {
        let args: &[Term] = if mode == PadMode::Constant { &[lit(7.0)] } else { &[] };
        let tys: &[Ty] = &[f32s()];
        let f = seq(&[
            map(
                MapKind::Glb(0),
                n,
                &term(Op::Reduce(ReduceKind::Unroll), &[3], &[], &[op2(ScalarOp::Add), lit(0.0)]),
            ),
            term(Op::Slide, &[3, 1, n + 2, n], tys, &[]),
            term(Op::Pad(mode), &[1, n, n + 2], tys, args),
            input("x", &arr(n, &f32s())),
        ]);
        check(&f, &[("x", floats(&[n]))]);
    }
}

#[test]
fn several_results_and_permutations() {
    let n = 60;
    let abs = map(MapKind::Glb(0), n, &op1(ScalarOp::Abs));
    let sum = reduce_seq(n, &op2(ScalarOp::Add), &lit(0.0));
    let f = seq(&[
        term(
            Op::Fork,
            &[],
            &[],
            &[
                seq(&[
                    term(Op::Rotate, &[7, n], &[f32s()], &[]),
                    term(Op::Stride, &[4, n / 4], &[f32s()], &[]),
                    term(Op::Reverse, &[n], &[f32s()], &[]),
                    abs,
                ]),
                seq(&[op1(ScalarOp::Sqrt), op1(ScalarOp::Abs), sum]),
            ],
        ),
        term(Op::Stride, &[6, n / 6], &[f32s()], &[]),
        input("x", &arr(n, &f32s())),
    ]);
    check(&f, &[("x", floats(&[n]))]);
}

#[test]
fn scans_run() {
    let n = 40;
    let scan = term(Op::Scan(ScanKind::Seq), &[10], &[], &[op2(ScalarOp::Add), lit(1.0)]);
    let f = seq(&[
        map(MapKind::Glb(0), n / 10, &scan),
        term(Op::Split, &[10, n / 10], &[f32s()], &[]),
        input("x", &arr(n, &f32s())),
    ]);
    check(&f, &[("x", floats(&[n]))]);
}

const I32: ScalarType = ScalarType::I32;

fn sop(op: ScalarOp, t: ScalarType, es: &[SExpr]) -> SExpr {
    SExpr::Op(op, t, es.to_vec())
}

fn slit(x: f64) -> SExpr {
    SExpr::Lit(Lit::float(F32, x))
}

/// Applies leaves to every element of `x`: all together, by scalars and by vectors of 4.
fn check_leaves(dom: ScalarType, leaves: &[(ScalarType, SExpr)], x: &Value, n: u64) {
    let d = Ty::Scalar(dom);
    let ((t, e), rest) = leaves.split_last().expect("there is a last one");
    let (cod, body) = rest.iter().rev().fold((Ty::Scalar(*t), e.clone()), |(cod, body), (t, e)| {
        (pairs(&Ty::Scalar(*t), &cod), SExpr::pair(e.clone(), body))
    });
    let f = leaf(&d, &cod, body.clone());
    let xs = input("x", &arr(n, &d));
    check(&seq(&[map(MapKind::Glb(0), n, &f), xs.clone()]), &[("x", x.clone())]);
    if !body.has_loop() {
        let t = seq(&[
            term(Op::AsScalar, &[4, n / 4], &[cod], &[]),
            map(MapKind::Glb(0), n / 4, &vectorize(4, &f)),
            term(Op::AsVector, &[4, n / 4], &[d], &[]),
            xs,
        ]);
        check(&t, &[("x", x.clone())]);
    }
}

#[test]
fn float_leaves() {
    let x = || SExpr::Arg;
    let b = ScalarType::Bool;
    let positive = sop(ScalarOp::Gt, b, &[x(), slit(0.1)]);
    let both = sop(ScalarOp::And, b, &[positive.clone(), sop(ScalarOp::Lt, b, &[x(), slit(0.3)])]);
    let root = sop(ScalarOp::Sqrt, F32, &[sop(ScalarOp::Abs, F32, &[x()])]);
    let dear = sop(ScalarOp::Exp, F32, &[sop(ScalarOp::Neg, F32, &[x()])]);
    let f32t = Ty::Scalar(F32);
    let bodies = [
        SExpr::If(Arc::new(positive.clone()), Arc::new(x()), Arc::new(slit(-1.0))),
        SExpr::If(Arc::new(both.clone()), Arc::new(dear.clone()), Arc::new(root.clone())),
        sop(ScalarOp::Select, F32, &[both, dear.clone(), root.clone()]),
        SExpr::Let(
            Arc::new(root),
            Arc::new(sop(
                ScalarOp::Mul,
                F32,
                &[SExpr::Var(0, f32t.clone()), SExpr::Var(0, f32t.clone())],
            )),
        ),
        sop(ScalarOp::Clamp, F32, &[dear, slit(0.8), slit(1.2)]),
        sop(ScalarOp::Sign, F32, &[x()]),
        sop(ScalarOp::Sub, F32, &[x(), sop(ScalarOp::Sub, F32, &[slit(1.0), x()])]),
        sop(ScalarOp::Max, F32, &[x(), SExpr::Lit(Lit::float(F32, f64::NEG_INFINITY))]),
        // for i < 5 do acc * 0.5 + x
        SExpr::For(
            Arc::new(slit(1.0)),
            Arc::new(SExpr::Lit(Lit::int(I32, 5))),
            Arc::new(sop(
                ScalarOp::Add,
                F32,
                &[sop(ScalarOp::Mul, F32, &[SExpr::Var(1, f32t.clone()), slit(0.5)]), x()],
            )),
        ),
        // while acc < 10 do acc * 2
        SExpr::While(
            Arc::new(sop(ScalarOp::Add, F32, &[x(), slit(1.0)])),
            Arc::new(sop(ScalarOp::Lt, b, &[SExpr::Var(0, f32t.clone()), slit(10.0)])),
            Arc::new(sop(ScalarOp::Mul, F32, &[SExpr::Var(0, f32t), slit(2.0)])),
        ),
    ];
    let mut leaves: Vec<_> = bodies.into_iter().map(|e| (F32, e)).collect();
    leaves.push((b, positive));
    check_leaves(F32, &leaves, &floats(&[64]), 64);
    leaves.retain(|(_, e)| !e.has_loop());
    check_leaves(F32, &leaves, &floats(&[64]), 64);
    let scaled = sop(ScalarOp::Mul, F32, &[x(), slit(1e9)]);
    let kinds = [I32, ScalarType::I8, ScalarType::U64, ScalarType::I64, ScalarType::F64];
    let cast = |t| (t, sop(ScalarOp::Cast(t), t, std::slice::from_ref(&scaled)));
    check_leaves(F32, &kinds.map(cast), &floats(&[64]), 64);
}

#[test]
fn integer_leaves() {
    let x = || SExpr::Arg;
    for t in ScalarType::ALL.into_iter().filter(|t| t.is_integer()) {
        let values: Vec<i64> = (0..64).map(|i| (i * 37) % 127).collect();
        let v = Value::ints(t, &[64], &values);
        let k = |n| SExpr::Lit(Lit::int(t, n));
        let bodies = [
            sop(ScalarOp::Mul, t, &[x(), sop(ScalarOp::Mul, t, &[x(), k(113)])]),
            sop(ScalarOp::Sub, t, &[k(3), x()]),
            sop(ScalarOp::Div, t, &[x(), k(7)]),
            sop(ScalarOp::Rem, t, &[x(), k(7)]),
            sop(ScalarOp::Pow, t, &[x(), k(3)]),
            sop(ScalarOp::Abs, t, &[sop(ScalarOp::Sub, t, &[x(), k(60)])]),
            sop(ScalarOp::Sign, t, &[sop(ScalarOp::Sub, t, &[x(), k(60)])]),
            sop(ScalarOp::Neg, t, &[x()]),
            sop(ScalarOp::Min, t, &[x(), k(60)]),
            sop(ScalarOp::Clamp, t, &[x(), k(20), k(60)]),
            sop(ScalarOp::BitAnd, t, &[x(), k(-10)]),
            sop(ScalarOp::BitOr, t, &[x(), k(9)]),
            sop(
                ScalarOp::BitXor,
                t,
                &[x(), sop(ScalarOp::BitNot, t, &[sop(ScalarOp::Neg, t, &[x()])])],
            ),
            // Numbers of places inside and outside 0..64, constant and not.
            sop(ScalarOp::Shl, t, &[x(), sop(ScalarOp::Sub, t, &[x(), k(30)])]),
            sop(
                ScalarOp::Shr,
                t,
                &[sop(ScalarOp::Sub, t, &[x(), k(60)]), sop(ScalarOp::Rem, t, &[x(), k(70)])],
            ),
            sop(
                ScalarOp::Shr,
                t,
                &[sop(ScalarOp::Neg, t, &[x()]), sop(ScalarOp::Sub, t, &[x(), k(30)])],
            ),
            sop(ScalarOp::Shl, t, &[x(), k(5)]),
            sop(ScalarOp::Shr, t, &[sop(ScalarOp::Neg, t, &[x()]), k(6)]),
            sop(ScalarOp::Shl, t, &[x(), k(64)]),
            sop(ScalarOp::Shr, t, &[sop(ScalarOp::Neg, t, &[x()]), k(64)]),
            sop(
                ScalarOp::MulHi,
                t,
                &[sop(ScalarOp::Mul, t, &[x(), k(113)]), sop(ScalarOp::Neg, t, &[x()])],
            ),
            SExpr::If(
                Arc::new(sop(ScalarOp::Lt, ScalarType::Bool, &[x(), k(50)])),
                Arc::new(k(1)),
                Arc::new(x()),
            ),
        ];
        check_leaves(t, &bodies.map(|e| (t, e)), &v, 64);
        let counts = [ScalarOp::Popcount, ScalarOp::Clz, ScalarOp::Ctz];
        let of = |op| (I32, sop(op, I32, &[sop(ScalarOp::Sub, t, &[x(), k(37)])]));
        check_leaves(t, &counts.map(of), &v, 64);
        let u = t.unsigned();
        let key = sop(ScalarOp::OrderKey, u, &[sop(ScalarOp::Sub, t, &[x(), k(37)])]);
        check_leaves(t, &[(u, key)], &v, 64);
    }
    let truths = Value::ints(ScalarType::Bool, &[8], &[0, 1, 1, 0, 1, 0, 0, 1]);
    let b = ScalarType::Bool;
    let ops = [ScalarOp::BitAnd, ScalarOp::BitOr, ScalarOp::BitXor];
    let of = |op| (b, sop(op, b, &[x(), sop(ScalarOp::Not, b, &[sop(op, b, &[x(), x()])])]));
    check_leaves(b, &ops.map(of), &truths, 8);
}

#[test]
fn functions_of_floats() {
    use ScalarOp as O;
    for t in [F32, ScalarType::F64] {
        let k = |x| SExpr::Lit(Lit::float(t, x));
        let of = |op: ScalarOp, args: &[SExpr]| sop(op, t, args);
        let x = || SExpr::Arg;
        let above_1 = || of(O::Add, &[k(1.25), of(O::Abs, &[x()])]);
        let u = t.unsigned();
        let key = |x: SExpr| (u, sop(O::OrderKey, u, &[x]));
        let negative = of(O::Neg, &[x()]);
        let keys = [key(x()), key(negative), key(k(0.0)), key(k(-0.0)), key(k(f64::NEG_INFINITY))];
        check_leaves(t, &keys, &Value::floats(t, &[64], &random(64)), 64);
        let mut leaves: Vec<_> = [
            O::Asin,
            O::Acos,
            O::Sinh,
            O::Cosh,
            O::Tanh,
            O::Asinh,
            O::Atanh,
            O::Exp2,
            O::Exp10,
            O::Expm1,
            O::Log1p,
            O::Cbrt,
            O::Erf,
            O::Erfc,
            O::Trunc,
        ]
        .map(|op| (t, of(op, &[x()])))
        .to_vec();
        leaves.extend([O::Acosh, O::Log2, O::Log10].map(|op| (t, of(op, &[above_1()]))));
        leaves.push((t, of(O::Hypot, &[x(), k(0.75)])));
        leaves.push((t, of(O::Copysign, &[above_1(), x()])));
        leaves.push((t, of(O::Trunc, &[of(O::Mul, &[x(), k(1e3)])])));
        let values = Value::floats(t, &[64], &random(64));
        check_leaves(t, &leaves, &values, 64);
        // Values that are no numbers, or out of the range of the integers that they are converted to.
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3e38, -3e38, 300.5, -300.5, 0.0];
        let values = Value::floats(t, &[8], &special);
        let b = ScalarType::Bool;
        let mut leaves = vec![(b, sop(O::IsNan, b, &[x()])), (b, sop(O::IsInf, b, &[x()]))];
        leaves.push(key(x()));
        let to = |s| (s, sop(O::Cast(t), s, &[x()]));
        leaves.extend(ScalarType::ALL.into_iter().filter(|s| !s.is_float()).map(to));
        check_leaves(t, &leaves, &values, 8);
    }
}

#[test]
fn gathers_and_iotas() {
    let n = 40;
    let ints = Ty::Scalar(I32);
    let index: Vec<i64> = (0..40).map(|i| (i * 7) % 30).collect();
    let body = sop(
        ScalarOp::Add,
        F32,
        &[SExpr::Arg.proj(false), sop(ScalarOp::Cast(F32), F32, &[SExpr::Arg.proj(true)])],
    );
    let f = seq(&[
        map(MapKind::Glb(0), n, &leaf(&pairs(&f32s(), &ints), &f32s(), body)),
        term(Op::Zip, &[n], &[f32s(), ints.clone()], &[]),
        term(
            Op::Fork,
            &[],
            &[],
            &[
                seq(&[
                    term(Op::Gather, &[30, n], &[f32s(), ints.clone()], &[]),
                    term(
                        Op::Fork,
                        &[],
                        &[],
                        &[input("x", &arr(30, &f32s())), input("is", &arr(n, &ints))],
                    ),
                ]),
                term(Op::Iota, &[n], &[Ty::Unit, ints.clone()], &[]),
            ],
        ),
    ]);
    let is = Value::ints(I32, &[40], &index);
    check(&f, &[("x", floats(&[30])), ("is", is)]);
}

#[test]
fn pairs_reduce_in_registers() {
    // Reduces an array of pairs to (sum, max). Both components read the accumulator.
    let p = pairs(&f32s(), &f32s());
    let (a, x) = (SExpr::Arg.proj(false), SExpr::Arg.proj(true));
    let first = sop(ScalarOp::Add, F32, &[a.clone().proj(false), x.clone().proj(true)]);
    let second = sop(ScalarOp::Max, F32, &[a.proj(false), x.proj(false)]);
    let op = leaf(&pairs(&p, &p), &p, SExpr::pair(first, second));
    let zero = term(Op::Fork, &[], &[], &[lit(0.0), lit(-1.0)]);
    let f = seq(&[
        map(MapKind::Glb(0), 6, &reduce_seq(10, &op, &zero)),
        term(Op::Split, &[10, 6], std::slice::from_ref(&p), &[]),
        input("x", &arr(60, &p)),
    ]);
    let v = Value::tuple([floats(&[60]), floats(&[60])]);
    check(&f, &[("x", v)]);
}

#[test]
fn groups_smaller_and_larger_than_their_loops() {
    // Two `mapLcl`s of different lengths, one of them longer than the device's work-groups.
    let n = 5000;
    let abs = op1(ScalarOp::Abs);
    let f = seq(&[
        map(
            MapKind::Wrg(0),
            2,
            &seq(&[
                map(MapKind::Lcl(0), n / 100, &reduce_seq(100, &op2(ScalarOp::Add), &lit(0.0))),
                term(Op::Split, &[100, n / 100], &[f32s()], &[]),
                term(Op::Reverse, &[n], &[f32s()], &[]),
                to(Space::Local, &map(MapKind::Lcl(0), n, &abs)),
            ]),
        ),
        input("x", &arr(2, &arr(n, &f32s()))),
    ]);
    let p = check(&f, &[("x", floats(&[2, n]))]);
    assert_eq!(p.launches[0].local, [1000, 1, 1].map(|k| if k == 1000 { 1024 } else { k }));
}

#[test]
fn temporaries_are_reused() {
    let n = 64;
    let stage = map(MapKind::Glb(0), n, &op1(ScalarOp::Abs));
    let f =
        seq(&[stage.clone(), stage.clone(), stage.clone(), stage, input("x", &arr(n, &f32s()))]);
    let p = check(&f, &[("x", floats(&[n]))]);
    assert_eq!((p.launches.len(), p.buffers.len()), (4, 4));
}

/// In a kernel that reads what it stores, what it only reads has no `restrict`: NVIDIA's compiler would read through a cache that
/// misses the store.
#[test]
fn only_stored_buffers_of_kernels_that_read_them_have_restrict() {
    let sums = |name: &str| {
        seq(&[reduce_seq(8, &op2(ScalarOp::Add), &lit(0.0)), input(name, &arr(8, &f32s()))])
    };
    let pair = Ty::pair(&f32s(), &f32s());
    let zero = SExpr::Lit(Lit::float(F32, 0.0));
    let less = SExpr::Op(ScalarOp::Lt, F32, vec![SExpr::Arg.proj(false), zero]);
    let chosen = SExpr::If(
        Arc::new(less),
        Arc::new(SExpr::Arg.proj(false)),
        Arc::new(SExpr::Arg.proj(true)),
    );
    let apart = seq(&[
        reduce_seq(2, &op2(ScalarOp::Add), &lit(0.0)),
        map(MapKind::Wrg(0), 2, &reduce_seq(8, &op2(ScalarOp::Add), &lit(0.0))),
        input("x", &arr(2, &arr(8, &f32s()))),
    ]);
    let fork = term(Op::Fork, &[], &[], &[apart, sums("y")]);
    let t = seq(&[leaf(&pair, &f32s(), chosen), fork]);
    let plan = check(&t, &[("x", floats(&[2, 8])), ("y", floats(&[8]))]);
    let kernels: Vec<&str> = plan.source.split("kernel __attribute__").skip(1).collect();
    let last = kernels.last().expect("a kernel");
    assert!(last.contains("    temp") && last.contains(" : temp"), "{last}");
    let (stored, read) = ("global float* restrict ", "global const float* restrict ");
    assert!(last.contains(stored) && !last.contains(read), "{last}");
    assert!(kernels[0].contains(read), "{}", plan.source);
}

/// A buffer that a kernel scatters to and reads has no `restrict`: PoCL's compiler would read before it scatters.
#[test]
fn scattered_buffers_of_kernels_that_read_them_have_no_restrict() {
    let inputs = [("xs", "[3][65536]f32"), ("is", "[3][9]i32"), ("ys", "[3][9]f32")];
    let sum = "mapGlb 0 (reduceSeq (+) 0.0 . mapSeq (\\x -> x * 2.0) . scatter)";
    let term = together::of(&format!("{sum} . zip . fork xs (zip . fork is ys)"), &inputs);
    let text = plan(&term).source;
    for param in ["global float* temp0", "global float* restrict temp1"] {
        assert!(text.contains(param), "{text}");
    }
}

/// What one work-item computes of the result of a work-group continues its kernel. Several groups end first.
#[test]
fn one_work_item_continues_one_group() {
    let sums = |rows: u64| {
        let sum = reduce_seq(4, &op2(ScalarOp::Add), &lit(0.0));
        let t = seq(&[
            op1(ScalarOp::Abs),
            reduce_seq(rows, &op2(ScalarOp::Add), &lit(0.0)),
            map(
                MapKind::Wrg(0),
                rows,
                &seq(&[sum, to(Space::Local, &map(MapKind::Lcl(0), 4, &op1(ScalarOp::Neg)))]),
            ),
            input("x", &arr(rows, &arr(4, &f32s()))),
        ]);
        check(&t, &[("x", floats(&[rows, 4]))]).launches.len()
    };
    assert_eq!([sums(1), sums(2)], [1, 2]);
}
