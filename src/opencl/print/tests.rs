//! Generated kernels against the reference evaluator.

use super::print;
use crate::calculus::eval;
use crate::calculus::scalar::{Lit, SExpr, ScalarFn};
use crate::calculus::size::{Size, SizeEnv};
use crate::calculus::term::{MapKind, Op, ReduceKind, Space, Term};
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
    Term::new(op, sizes, tys.to_vec(), args.to_vec()).unwrap()
}

/// Composition, outermost first.
fn seq(terms: &[Term]) -> Term {
    let (last, rest) = terms.split_last().unwrap();
    rest.iter().rev().fold(last.clone(), |g, f| f.after(&g).unwrap())
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
            s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            f64::from((((s >> 40) as f32) / 16_777_216.0) - 0.5)
        })
        .collect()
}

fn floats(dims: &[u64]) -> Value {
    let dims: Vec<usize> = dims.iter().map(|d| *d as usize).collect();
    Value::floats(F32, &dims, &random(dims.iter().product::<usize>() as u64))
}

fn plan(t: &Term) -> HostPlan {
    let device = DeviceLimits { max_work_group_size: 1024, max_item_sizes: [1024; 3], compute_units: 2, ..DeviceLimits::default() };
    let options = Options::new("test", device, &Limits::default());
    print(&lower(t, &SizeEnv::new(), &options).unwrap())
}

/// Runs the term on the default device and compares with the evaluator.
fn check(t: &Term, inputs: &[(&str, Value)]) -> HostPlan {
    let plan = plan(t);
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{}\n{:?}", plan.source, plan.launches);
    }
    let env = SizeEnv::new();
    let named = inputs.iter().map(|(n, v)| (Arc::from(*n), v.clone())).collect();
    let expected = eval::apply(t, &env, &named, &Value::unit()).unwrap();
    let mut given = Inputs::default();
    for (name, v) in inputs {
        for (k, (ty, bytes)) in v.components().into_iter().enumerate() {
            given.insert(*name, k, HostArray::from_bytes(ty, bytes).unwrap());
        }
    }
    let rt = Runtime::open(None).unwrap();
    let uploaded = rt.upload(&given).unwrap();
    let built = match rt.build(&Arc::new(plan.clone())) {
        Ok(b) => b,
        Err(e) => panic!("{e}\n{}", plan.source),
    };
    let (_, outputs) = rt.prepare(built, &uploaded).unwrap().check(&rt).unwrap();
    let bytes: Vec<&[u8]> = outputs.iter().map(HostArray::bytes).collect();
    let result = compare(&expected, &bytes, 1 << 20);
    assert!(result.ok, "{result:?}\n{}", plan.source);
    plan
}

/// `map (\x -> 3 * x)` over vectors of `w`, `n` a multiple of it.
fn scal(n: u64, w: u64) -> Term {
    let body = SExpr::Op(
        ScalarOp::Mul,
        F32,
        vec![SExpr::Input("a".into(), 0, F32), SExpr::Arg],
    );
    let f = vectorize(w, &leaf(&f32s(), &f32s(), body));
    seq(&[
        term(Op::AsScalar, &[w, n / w], &[f32s()], &[]),
        map(MapKind::Glb(0), n / w, &f),
        term(Op::AsVector, &[w, n / w], &[f32s()], &[]),
        input("x", &arr(n, &f32s())),
    ])
}

#[test]
fn scal_runs() {
    for n in [4, 128, 4096] {
        let a = Value::floats(F32, &[], &[3.0]);
        check(&scal(n, 4), &[("x", floats(&[n])), ("a", a)]);
    }
}

/// `reduceSeq (+) . mapGlb G (reduceSeq w . asScalar . wrap . reduceSeq m abs+ over vectors) . split`, with `u` accumulators.
fn asum_cpu(groups: u64, m: u64, u: u64, w: u64) -> Term {
    let v = Ty::vector(&c(w), &f32s()).unwrap();
    let each = m * u * w;
    let accumulators = seq(&[
        term(Op::Replicate, &[u], &[v.clone()], &[]),
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

/// `mapWrg (reduceSeq . toLocal (mapLcl (reduceSeq abs+)) . transpose . split) . split`
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
