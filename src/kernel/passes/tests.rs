//! Tests of what the passes make of small kernels, and that random kernels compute the same as
//! before.

use crate::calculus::scalar::Lit;
use crate::kernel::ir::facts::Guard;
use crate::kernel::ir::index::{Atom, Index, Var};
use crate::kernel::ir::testing::kernel;
use crate::kernel::ir::walk::{Effects, Fresh};
use crate::kernel::ir::{Block, ElemTy, Expr, LoopKind, Mem, Reg, Scope, Stmt};
use crate::kernel::options::DeviceLimits;
use crate::lang::typed::ScalarOp;
use crate::lang::types::ScalarType::{Bool, I32};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns the value of a number of type `i32`.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are the number")]
fn number(l: &Lit) -> i32 {
    (l.bits as u32).cast_signed()
}

const INT: ElemTy = ElemTy { scalar: I32, width: 1 };
const TRUTH: ElemTy = ElemTy { scalar: Bool, width: 1 };

/// An input whose elements are valid indices of the arrays.
const INPUT: Mem = Mem::Global(0);
const OUT: Mem = Mem::Global(1);
const TILE: Mem = Mem::Local(0);
const OWN: Mem = Mem::Private(0);

/// Elements of each array.
const LEN: i64 = 48;

fn var(id: u32) -> Var {
    Var { id, name: format!("i{id}").into(), lo: 0, hi: 3 }
}

fn at(id: u32) -> Index {
    Index::from(var(id))
}

fn reg(id: u32) -> Reg {
    Reg { id, name: format!("t{id}").into(), ty: INT }
}

fn load(m: Mem, i: &Index) -> Expr {
    Expr::Load(m, INT, i.clone())
}

fn int(x: i64) -> Expr {
    Expr::Lit(Lit::int(I32, x.into()))
}

fn op(op: ScalarOp, a: Expr, b: Expr) -> Expr {
    Expr::Op(op, INT, vec![a, b])
}

fn add(a: Expr, b: Expr) -> Expr {
    op(ScalarOp::Add, a, b)
}

fn decl(id: u32, e: Expr) -> Stmt {
    Stmt::Decl(reg(id), Some(e))
}

fn store(i: i64, e: Expr) -> Stmt {
    Stmt::Store(OUT, Index::from(i), e)
}

fn barrier() -> Stmt {
    Stmt::Barrier { scope: Scope::Group, local: true, global: true }
}

fn repeat(id: u32, hi: &Index, body: Block) -> Stmt {
    let lo = Index::from(0);
    Stmt::Loop { kind: LoopKind::Seq, var: var(id), lo, hi: hi.clone(), body }
}

fn four() -> Index {
    Index::from(4)
}

fn improved(body: Block) -> Block {
    let mut k = kernel(body);
    let device = DeviceLimits { access_bytes: 16, compute_units: 0, ..DeviceLimits::default() };
    super::improve(
        &mut k,
        &device,
        false,
        &mut Fresh { next: 1000, first: 0, reserved: BTreeSet::new() },
    );
    k.body
}

/// Vector widths of the loads from this memory, and of the stores to it, in code order.
fn accesses(b: &Block, wanted: Mem) -> (Vec<usize>, Vec<usize>) {
    let (mut loads, mut stores) = (vec![], vec![]);
    for s in b {
        s.visit(&mut |s| {
            s.exprs(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load(m, t, _) = e
                        && *m == wanted
                    {
                        loads.push(t.width);
                    }
                });
            });
            if let Stmt::Store(m, _, e) = s
                && *m == wanted
            {
                stores.push(e.ty().width);
            }
        });
    }
    (loads, stores)
}

fn loads(b: &Block, m: Mem) -> Vec<usize> {
    accesses(b, m).0
}

#[test]
fn a_load_is_made_once() {
    let x = || load(INPUT, &at(7).times(3));
    let twice = vec![store(0, x()), store(9, add(x(), int(1)))];
    assert_eq!(loads(&improved(twice), INPUT), [1]);
    // A value that is used once gets no register.
    let once = vec![store(0, x())];
    assert_eq!(improved(once.clone()), once);
    // Two registers hold the same place.
    let place = || op(ScalarOp::Mul, load(INPUT, &at(7)), int(3));
    let from = |k| load(TILE, &Index::data(Expr::Reg(reg(k))));
    let alike = vec![decl(1, place()), decl(2, place()), store(0, from(1)), store(9, from(2))];
    assert_eq!(loads(&improved(alike), TILE).len(), 1);
    // If a register already holds the value, it is reused.
    let held = vec![decl(1, x()), store(0, add(x(), Expr::Reg(reg(1))))];
    let sum = add(Expr::Reg(reg(1)), Expr::Reg(reg(1)));
    assert_eq!(improved(held), [decl(1, x()), store(0, sum)]);
}

#[test]
fn stores_and_barriers_make_loads_new() {
    let x = |m| load(m, &at(7).times(3));
    let around = |m, between: Stmt| {
        let all = vec![decl(1, x(m)), between, store(9, add(x(m), Expr::Reg(reg(1))))];
        loads(&improved(all), m).len()
    };
    let set = |m| Stmt::Store(m, at(8), int(1));
    assert_eq!(around(OWN, set(OWN)), 2);
    assert_eq!(around(TILE, set(TILE)), 2);
    assert_eq!(around(OWN, set(TILE)), 1);
    assert_eq!(around(INPUT, set(OUT)), 1);
    assert_eq!(around(INPUT, barrier()), 1);
    assert_eq!(around(OWN, barrier()), 1);
    // At the barrier, another work-item may have stored to a memory that the kernel stores to.
    let shared = vec![set(TILE), decl(1, x(TILE)), barrier(), store(9, x(TILE))];
    assert_eq!(loads(&improved(shared), TILE).len(), 2);
    // A store in a loop precedes the load of the next iteration.
    let inside = repeat(1, &four(), vec![store(0, x(OWN)), set(OWN)]);
    assert_eq!(loads(&improved(vec![decl(1, x(OWN)), inside]), OWN).len(), 2);
}

#[test]
fn what_a_guard_protects_stays_behind_it() {
    let i = at(7).plus(-2);
    let guard = Guard::not_negative(&i);
    let x = || load(INPUT, &i);
    let safe = || Expr::Guarded(guard.clone(), Arc::new(x()), Arc::new(int(0)));
    let all = vec![store(0, add(safe(), int(1))), store(9, add(safe(), int(2)))];
    // The guarded value is shared as a whole.
    let shared = improved(all);
    assert_eq!(shared[0], decl(1000, safe()));
    assert_eq!(loads(&shared, INPUT), [1]);
    // Each branch keeps its own load.
    let branches = vec![Stmt::If(guard.clone(), vec![store(0, x())], vec![store(0, x())])];
    assert_eq!(improved(branches.clone()), branches);
    let lazy = vec![
        store(0, safe()),
        Stmt::If(guard.clone(), vec![store(4, x()), store(9, add(x(), int(1)))], vec![]),
    ];
    let Stmt::If(_, inside, _) = &improved(lazy)[1] else { panic!("a condition") };
    assert_eq!(inside[0], decl(1000, x()));
}

#[test]
fn registers_that_change_are_not_what_they_were() {
    let sum = || {
        let product = op(ScalarOp::Mul, Expr::Reg(reg(1)), int(3));
        add(product, int(5))
    };
    let changes = vec![
        decl(1, int(7)),
        store(0, sum()),
        Stmt::Set(reg(1), add(Expr::Reg(reg(1)), int(1))),
        store(9, sum()),
    ];
    assert_eq!(improved(changes.clone()), changes);
}

#[test]
fn what_does_not_change_leaves_a_loop_that_runs() {
    let x = || load(INPUT, &at(7));
    let y = || load(INPUT, &at(1));
    let body = |e| vec![Stmt::Store(OUT, at(1), e)];
    let moved = improved(vec![repeat(1, &four(), body(add(x(), y())))]);
    let rest = add(Expr::Reg(reg(1000)), y());
    assert_eq!(moved, [decl(1000, x()), repeat(1, &four(), body(rest))]);
    // Not moved: loads of a loop that may not run, loads that are not always evaluated, and loads
    // of memory that others may change.
    let sometimes = vec![repeat(1, &at(8), body(x()))];
    assert_eq!(improved(sometimes.clone()), sometimes);
    let guard = Guard::not_negative(&at(1).plus(-2));
    let guarded = vec![repeat(1, &four(), vec![Stmt::If(guard, body(x()), vec![])])];
    assert_eq!(improved(guarded.clone()), guarded);
    let meeting = vec![
        Stmt::Store(TILE, at(8), int(1)),
        repeat(1, &four(), vec![barrier(), Stmt::Store(OUT, at(1), load(TILE, &at(7)))]),
    ];
    assert_eq!(improved(meeting.clone()), meeting);
}

/// A loop whose steps take a state, the first one an initial value; `inside` are further statements of a step.
fn scan_from(initial: Block, inside: Block) -> Block {
    let flag = Reg { id: 1, name: "t1".into(), ty: TRUTH };
    let truth = |b: bool| Expr::Lit(Lit::int(Bool, b.into()));
    let set = |to: u32, e| Stmt::Set(reg(to), e);
    let mut body = vec![
        decl(3, int(0)),
        Stmt::Branch(Expr::Reg(flag.clone()), vec![set(3, Expr::Reg(reg(2)))], initial),
        Stmt::Set(flag.clone(), truth(true)),
        set(2, add(Expr::Reg(reg(3)), load(INPUT, &at(0)))),
        Stmt::Store(OUT, at(0), Expr::Reg(reg(2))),
    ];
    body.extend(inside);
    vec![Stmt::Decl(flag, Some(truth(false))), decl(2, int(0)), repeat(0, &four(), body)]
}

#[test]
fn initial_values_are_taken_before_loops() {
    let set = |e| Stmt::Set(reg(3), e);
    let fixed = set(load(INPUT, &Index::from(5)));
    let sum = vec![
        decl(5, int(0)),
        repeat(7, &four(), vec![Stmt::Set(reg(5), add(Expr::Reg(reg(5)), load(INPUT, &at(7))))]),
        set(Expr::Reg(reg(5))),
    ];
    let changed = |initial: Block, inside: Block| {
        let mut k = kernel(scan_from(initial, inside));
        let before = k.body.clone();
        super::first_steps::before_loops(&mut k);
        let has_branch = |b: &Block| {
            let mut found = false;
            b.iter().for_each(|s| s.visit(&mut |s| found |= matches!(s, Stmt::Branch(..))));
            found
        };
        assert_eq!(has_branch(&k.body), before == k.body, "all or nothing: {:?}", k.body);
        let (mut one, mut other) = (Machine::new(&before), Machine::new(&k.body));
        one.run(&before);
        other.run(&k.body);
        assert_eq!(one.memory, other.memory);
        before != k.body
    };
    assert!(changed(vec![fixed.clone()], vec![]));
    assert!(changed(sum, vec![]));
    // The first step's value depends on the step, on what steps store, or on a register that they set.
    assert!(!changed(vec![set(load(INPUT, &at(0)))], vec![]));
    assert!(!changed(vec![set(load(OUT, &Index::from(5)))], vec![]));
    assert!(!changed(vec![set(Expr::Reg(reg(2)))], vec![]));
    // The initial value does more than it should.
    assert!(!changed(vec![fixed.clone(), store(9, int(1))], vec![]));
    assert!(!changed(vec![fixed.clone(), fixed.clone()], vec![]));
    assert!(!changed(vec![decl(5, int(0))], vec![]));
    // The state is set again: all of its uses are after the first assignment.
    assert!(changed(vec![fixed], vec![Stmt::Set(reg(2), int(1))]));
}

#[test]
fn loops_that_may_not_run_keep_their_first_step() {
    let fixed = vec![Stmt::Set(reg(3), load(INPUT, &Index::from(5)))];
    let mut k = kernel(scan_from(fixed, vec![]));
    let Some(Stmt::Loop { hi, .. }) = k.body.last_mut() else { panic!("a loop") };
    *hi = at(6);
    let before = k.body.clone();
    super::first_steps::before_loops(&mut k);
    assert_eq!(before, k.body);
}

#[test]
fn parts_of_a_split_loop_take_the_initial_value_once() {
    let fixed = vec![Stmt::Set(reg(3), load(INPUT, &Index::from(5)))];
    let mut body = scan_from(fixed, vec![]);
    let Some(Stmt::Loop { hi, .. }) = body.last_mut() else { panic!("a loop") };
    *hi = Index::from(1);
    let mut rest = body.last().cloned().expect("a loop");
    if let Stmt::Loop { lo, hi, .. } = &mut rest {
        (*lo, *hi) = (Index::from(1), four());
    }
    body.push(rest);
    let mut k = kernel(body);
    let (mut one, mut other) = (Machine::new(&k.body), Machine::new(&k.body));
    one.run(&k.body);
    super::first_steps::before_loops(&mut k);
    other.run(&k.body);
    assert_eq!(one.memory, other.memory);
    // Neither the choices nor the flag remain.
    let mut left = 0;
    let mut count = |s: &Stmt| {
        let flag = matches!(s, Stmt::Decl(r, _) | Stmt::Set(r, _) if r.id == 1);
        left += usize::from(flag || matches!(s, Stmt::Branch(..)));
    };
    k.body.iter().for_each(|s| s.visit(&mut count));
    assert_eq!(left, 0, "{:?}", k.body);
}

#[test]
fn dear_values_leave_conditions_of_long_loops() {
    // In each of so many steps, a value is computed if the input says so.
    let moved = |steps: i64, value: Expr| {
        let asked = op(ScalarOp::Lt, load(INPUT, &at(0)), int(0));
        let side = vec![Stmt::Store(OUT, at(0), value)];
        let mut k = kernel(vec![
            decl(2, load(INPUT, &Index::from(5))),
            repeat(0, &Index::from(steps), vec![Stmt::Branch(asked, side, vec![])]),
        ]);
        let mut fresh = Fresh { next: 1000, first: 0, reserved: BTreeSet::new() };
        super::licm::invariants(&mut k, &mut fresh);
        k.body.len() > 2
    };
    let root = |x: Expr| Expr::Op(ScalarOp::Sqrt, INT, vec![x]);
    let two = || Expr::Reg(reg(2));
    assert!(moved(8, root(two())));
    // The loop is short, the value is no dear one, depends on nothing or on the step, is loaded, or cannot always be computed.
    assert!(!moved(4, root(two())));
    assert!(!moved(8, add(two(), int(1))));
    assert!(!moved(8, root(int(2))));
    assert!(!moved(8, root(Expr::Index(at(0), I32))));
    assert!(!moved(8, root(load(INPUT, &Index::from(7)))));
    assert!(!moved(8, op(ScalarOp::Div, int(7), two())));
}

#[test]
fn gathers_are_made_once() {
    // The lanes are three apart, so that they are no vector in memory.
    let gather =
        |m, i: &Index| Expr::vector((0..8).map(|l| load(m, &i.times(32).plus(3 * l))).collect());
    let nest = |e: Expr| {
        let body = vec![Stmt::Store(OUT, at(1).times(32).add(&at(2).times(8)), e)];
        vec![repeat(1, &four(), vec![repeat(2, &four(), body)])]
    };
    let new = Mem::Private(0);
    let wide = ElemTy { width: 8, ..INT };
    let place = at(2).times(8);
    let kept = repeat(2, &four(), vec![Stmt::Store(new, place.clone(), gather(INPUT, &at(2)))]);
    let [read] = nest(Expr::Load(new, wide, place)).try_into().expect("one loop");
    assert_eq!(improved(nest(gather(INPUT, &at(2)))), [kept, read]);
    // Not hoisted: gathers that change in the outer loop, gathers from memory that the kernel
    // writes, gathers of few lanes, and gathers that are not always made.
    let sum = gather(INPUT, &at(2).add(&at(1)));
    let narrow = Expr::vector((0..4).map(|l| load(INPUT, &at(2).plus(3 * l))).collect());
    let lazy = Expr::Guarded(
        Guard::not_negative(&at(1).plus(-2)),
        Arc::new(gather(INPUT, &at(2))),
        Arc::new(Expr::Splat(Arc::new(int(0)), 8)),
    );
    for e in [sum, gather(OUT, &at(2)), narrow, lazy] {
        assert_eq!(improved(nest(e.clone())), nest(e));
    }
    // The size of the arrays is limited.
    let long = Index::from(1000);
    let body = vec![Stmt::Store(OUT, at(1), gather(INPUT, &at(2)))];
    let nest = vec![repeat(1, &four(), vec![repeat(2, &long, body)])];
    assert_eq!(improved(nest.clone()), nest);
}

#[test]
fn products_are_added_to_what_is_there() {
    let float = ElemTy { scalar: crate::lang::types::ScalarType::F32, width: 1 };
    let value = |id| Expr::Reg(Reg { ty: float, ..reg(id) });
    let add = |a, b| Expr::Op(ScalarOp::Add, float, vec![a, b]);
    let square = |id| Expr::Op(ScalarOp::Mul, float, vec![value(id), value(id)]);
    let relaxed = |e: Expr| {
        let mut k = kernel(vec![Stmt::Store(OUT, at(1), e)]);
        super::fma::sums(&mut k);
        let [Stmt::Store(_, _, e)] = &k.body[..] else { panic!("a store") };
        e.clone()
    };
    let sum = add(add(square(1), square(2)), value(3));
    assert_eq!(relaxed(sum), add(add(value(3), square(1)), square(2)));
    let inside = add(square(1), add(square(2), value(3)));
    assert_eq!(relaxed(inside), add(add(value(3), square(1)), square(2)));
    // Sums of nothing but products, and sums that do not begin with a product, stay.
    for e in [add(square(1), square(2)), add(value(3), square(1))] {
        assert_eq!(relaxed(e.clone()), e);
    }
    // Integers are exact and stay.
    let whole = Expr::Op(ScalarOp::Add, INT, vec![int(1), int(2)]);
    assert_eq!(relaxed(whole.clone()), whole);
}

#[test]
fn quotients_by_roots_become_products() {
    use crate::lang::types::ScalarType::{F16, F32};
    let changed = |e: Expr| {
        let mut k = kernel(vec![Stmt::Store(OUT, at(1), e)]);
        super::roots::reciprocal(&mut k);
        let [Stmt::Store(_, _, e)] = &k.body[..] else { panic!("a store") };
        e.clone()
    };
    for (scalar, width) in [(F32, 1), (F32, 4), (F16, 1)] {
        let t = ElemTy { scalar, width };
        let value = |id| Expr::Reg(Reg { ty: t, ..reg(id) });
        let root = Expr::Op(ScalarOp::Sqrt, t, vec![value(1)]);
        let by_root = |e: Expr| Expr::Op(ScalarOp::Div, t, vec![e, root.clone()]);
        let reciprocal = Expr::Op(ScalarOp::Rsqrt, t, vec![value(1)]);
        let one = Expr::Lit(Lit::float(scalar, 1.0)).widen(width);
        let (inverse, quotient) = (by_root(one), by_root(value(2)));
        if scalar == F16 {
            // Operations on `f16` are rounded by themselves.
            assert_eq!(changed(quotient.clone()), quotient);
            continue;
        }
        assert_eq!(changed(inverse), reciprocal);
        let product = |e| Expr::Op(ScalarOp::Mul, t, vec![e, reciprocal.clone()]);
        assert_eq!(changed(quotient.clone()), product(value(2)));
        // Also inside other expressions.
        assert_eq!(changed(add(quotient, int(1))), add(product(value(2)), int(1)));
    }
}

#[test]
fn masked_updates_share_their_condition() {
    let less = |a: i64, b: i64| Expr::Op(ScalarOp::Lt, TRUTH, vec![int(a), int(b)]);
    let masked =
        |c: &Expr, x: Expr, z: i64| Expr::If(Arc::new(c.clone()), Arc::new(x), Arc::new(int(z)));
    let update = |r: u32, e: Expr| Stmt::Set(reg(r), add(Expr::Reg(reg(r)), e));
    let plain = |r: u32, e: Expr| Stmt::Set(reg(r), add(Expr::Reg(reg(r)), e));
    let (p, q) = (less(1, 2), less(3, 4));
    let changed = |body: Block| {
        let mut k = kernel(body);
        super::masked::reductions(&mut k, false);
        k.body
    };
    let x = || load(INPUT, &at(7));
    // The conditions alternate, and the updates change different registers.
    let tile = vec![
        update(1, masked(&p, x(), 0)),
        update(2, masked(&q, x(), 0)),
        update(3, masked(&p, x(), 0)),
        update(4, masked(&q, x(), 0)),
    ];
    let both = [(&p, [1, 3]), (&q, [2, 4])];
    let shared =
        both.map(|(c, rs)| Stmt::Branch(c.clone(), rs.map(|r| plain(r, x())).to_vec(), vec![]));
    assert_eq!(changed(tile), shared);
    // One update alone keeps the register.
    let kept = Expr::If(
        Arc::new(p.clone()),
        Arc::new(add(Expr::Reg(reg(1)), x())),
        Arc::new(Expr::Reg(reg(1))),
    );
    assert_eq!(changed(vec![update(1, masked(&p, x(), 0))]), [Stmt::Set(reg(1), kept)]);
    // A value that is not neutral is added.
    let added = vec![update(1, masked(&p, x(), 1)), update(2, masked(&p, x(), 1))];
    assert_eq!(changed(added.clone()), added);
    // What reads a register that an update changes comes after it.
    let chain = vec![
        update(1, masked(&p, x(), 0)),
        update(2, masked(&q, Expr::Reg(reg(1)), 0)),
        update(3, masked(&p, x(), 0)),
    ];
    let places: Vec<u32> = changed(chain)
        .iter()
        .map(|s| match s {
            Stmt::Set(r, _) => r.id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(places, [1, 2, 3]);
}

#[test]
fn masked_sums_of_floats_keep_the_sign_of_zero() {
    let float = ElemTy { scalar: crate::lang::types::ScalarType::F32, width: 1 };
    let value = |id| Expr::Reg(Reg { ty: float, ..reg(id) });
    let zero = Expr::Lit(Lit::float(float.scalar, 0.0));
    let truth = Expr::Op(ScalarOp::Lt, TRUTH, vec![int(1), int(2)]);
    let masked = Expr::If(Arc::new(truth), Arc::new(value(2)), Arc::new(zero));
    let sum = Expr::Op(ScalarOp::Add, float, vec![value(1), masked]);
    let body = vec![Stmt::Set(Reg { ty: float, ..reg(1) }, sum)];
    for relaxed in [false, true] {
        let mut k = kernel(body.clone());
        super::masked::reductions(&mut k, relaxed);
        assert_eq!(k.body != body, relaxed);
    }
}

#[test]
fn neighbours_are_loaded_together() {
    let sum = |m, base: &Index, ks: &[i64]| {
        let each = ks.iter().map(|k| load(m, &base.plus(*k)));
        vec![store(0, each.reduce(add).expect("a load"))]
    };
    let widths = |base: Index, ks: &[i64]| loads(&improved(sum(INPUT, &base, ks)), INPUT);
    assert_eq!(widths(at(7).times(4), &[0, 1, 2, 3]), [4]);
    assert_eq!(widths(at(7).times(4), &[2, 0, 3, 1, 4, 5]), [4, 2]);
    // Places that are not aligned, or not all present.
    assert_eq!(widths(at(7).times(4), &[1, 2, 3]), [2, 1]);
    assert_eq!(widths(at(7).times(2), &[0, 1, 2, 3]), [2, 2]);
    assert_eq!(widths(at(7), &[0, 1, 2, 3]), [1, 1, 1, 1]);
    // Elements of private arrays become registers.
    assert_eq!(loads(&improved(sum(OWN, &at(7).times(4), &[0, 1, 2, 3])), OWN), [1; 4]);
    // The register blocks of a product: 4 + 4 distinct loads.
    let (a, b) = (at(7).times(4), at(8).times(4).plus(16));
    let products: Block = (0..16)
        .map(|k| {
            let product = op(ScalarOp::Mul, load(TILE, &a.plus(k / 4)), load(TILE, &b.plus(k % 4)));
            let acc = reg(100 + u32::try_from(k).expect("small"));
            Stmt::Set(acc.clone(), add(Expr::Reg(acc), product))
        })
        .collect();
    let products = improved(products);
    assert_eq!(loads(&products, TILE), [4, 4]);
    assert_eq!(products.len(), 18);
}

#[test]
fn neighbours_are_stored_together() {
    let four = |between: Option<Stmt>| {
        let mut b: Block = (0..4).map(|k| store(4 + i64::from(k), Expr::Reg(reg(1 + k)))).collect();
        b.splice(2..2, between);
        accesses(&improved(b), OUT).1
    };
    assert_eq!(four(None), [4]);
    // An unrelated statement between them.
    assert_eq!(four(Some(Stmt::Store(TILE, at(7), load(INPUT, &at(7))))), [4]);
    assert_eq!(four(Some(decl(20, load(INPUT, &at(7))))), [4]);
    // Statements that read or may overwrite the elements, that change a stored value, or that
    // synchronise work-items.
    assert_eq!(four(Some(decl(20, load(OUT, &at(7))))), [2, 2]);
    assert_eq!(four(Some(Stmt::Store(OUT, at(7), int(0)))), [2, 1, 2]);
    assert_eq!(four(Some(Stmt::Set(reg(1), int(0)))), [2, 2]);
    assert_eq!(four(Some(barrier())), [2, 2]);
    assert_eq!(four(Some(store(4, int(0)))), [2, 1, 2]);
    // A copy consists of wide loads and wide stores.
    let copy =
        (0..8).map(|k| Stmt::Store(TILE, Index::from(k), load(INPUT, &at(7).times(8).plus(k))));
    let copy = improved(copy.collect());
    assert_eq!((loads(&copy, INPUT), accesses(&copy, TILE).1), (vec![4, 4], vec![4, 4]));
}

#[test]
fn copying_loops_copy_vectors() {
    let copy = |hi: i64, into: Index, from: Index| {
        let body = vec![Stmt::Store(TILE, into, load(INPUT, &from))];
        improved(vec![repeat(1, &Index::from(hi), body)])
    };
    let (into, from) = (at(1).add(&at(7).times(8)), at(1).add(&at(8).times(4)).plus(4));
    let wide = |b: &Block| (loads(b, INPUT), accesses(b, TILE).1);
    let eight = copy(8, into.clone(), from.clone());
    assert_eq!(wide(&eight), (vec![4], vec![4]));
    let Stmt::Loop { hi, .. } = &eight[0] else { panic!("a loop") };
    assert_eq!(hi.as_constant(), Some(2));
    // One vector needs no loop.
    let four = copy(4, into.clone(), from.clone());
    assert!(matches!(four.as_slice(), [Stmt::Store(..)]));
    // Fewer lanes if the bounds or places require it; one lane if the elements are not neighbours.
    assert_eq!(wide(&copy(6, into.clone(), from.clone())), (vec![2], vec![2]));
    assert_eq!(wide(&copy(8, into.plus(2), from.clone())), (vec![2], vec![2]));
    assert_eq!(wide(&copy(8, into.plus(1), from.clone())), (vec![1], vec![1]));
    assert_eq!(wide(&copy(8, into, from.times(2))), (vec![1], vec![1]));
}

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).expect("small")].clone()
    }
}

/// Generates random code; holds the loop variables and registers that are in scope.
#[derive(Clone)]
struct Maker {
    vars: Vec<Var>,
    fixed: Vec<Reg>,
    changing: Vec<Reg>,
}

impl Maker {
    fn index(&self, r: &mut Random) -> Index {
        let mut i = Index::from(i64::try_from(r.below(8)).expect("small"));
        for v in &self.vars {
            i = i.add(&Index::from(v.clone()).times(r.pick(&[0, 1, 4])));
        }
        i
    }

    fn expr(&self, r: &mut Random, depth: usize) -> Expr {
        match r.below(if depth == 0 { 4 } else { 8 }) {
            0 => int(i64::try_from(r.below(3)).expect("small")),
            1 => {
                let all = [self.fixed.clone(), self.changing.clone()].concat();
                if all.is_empty() { int(5) } else { Expr::Reg(r.pick(&all)) }
            }
            2 | 3 => load(r.pick(&[INPUT, OUT, TILE, OWN]), &self.index(r)),
            4 => {
                let i = self.index(r).plus(-6);
                let guard = Guard::not_negative(&i);
                let (a, b) = (load(INPUT, &i), self.expr(r, depth - 1));
                Expr::Guarded(guard, Arc::new(add(a, self.expr(r, depth - 1))), Arc::new(b))
            }
            5 => load(r.pick(&[TILE, OWN]), &Index::data(load(INPUT, &self.index(r)))),
            k => {
                let by = if k == 6 { ScalarOp::Add } else { ScalarOp::Mul };
                op(by, self.expr(r, depth - 1), self.expr(r, depth - 1))
            }
        }
    }

    fn block(&self, r: &mut Random, depth: usize, next: &mut u32) -> Block {
        let mut me = self.clone();
        let mut out = vec![];
        for _ in 0..2 + r.below(6) {
            *next += 1;
            let inner = |me: &Maker, r: &mut Random, next: &mut u32| me.block(r, depth - 1, next);
            match r.below(if depth == 0 { 6 } else { 10 }) {
                0 | 1 => {
                    out.push(decl(*next, me.expr(r, 2)));
                    let kind = if r.below(3) > 0 { &mut me.fixed } else { &mut me.changing };
                    kind.push(reg(*next));
                }
                2 if !me.changing.is_empty() => {
                    out.push(Stmt::Set(r.pick(&me.changing), me.expr(r, 2)));
                }
                3 => {
                    // Stores to neighbours, in some order.
                    let (m, i) = (r.pick(&[OUT, TILE]), me.index(r));
                    let from = me.index(r);
                    let mut ks: Vec<i64> =
                        (0..=i64::try_from(r.below(4)).expect("small")).collect();
                    if r.below(2) > 0 {
                        ks.rotate_left(1);
                    }
                    for k in ks {
                        let x = add(load(r.pick(&[INPUT, TILE]), &from.plus(k)), me.expr(r, 1));
                        out.push(Stmt::Store(m, i.plus(k), x));
                    }
                }
                2 | 4 => {
                    let m = r.pick(&[OUT, TILE, OWN]);
                    out.push(Stmt::Store(m, me.index(r), me.expr(r, 2)));
                }
                5 if r.below(2) > 0 => {
                    // A loop that copies.
                    let v = var(*next);
                    let along = |i: Index| i.add(&Index::from(v.clone()));
                    let from = load(INPUT, &along(me.index(r)));
                    let hi = r.pick(&[2, 3, 4].map(Index::from));
                    let copy = Stmt::Store(TILE, along(me.index(r)), from);
                    out.push(repeat(*next, &hi, vec![copy]));
                }
                5 => out.push(barrier()),
                6 | 7 => {
                    let v = var(*next);
                    let bounds = me.vars.iter().map(|v| Index::from(v.clone()));
                    let hi = r.pick(&bounds.chain([1, 3, 4].map(Index::from)).collect::<Vec<_>>());
                    let inside = Maker { vars: [me.vars.clone(), vec![v]].concat(), ..me.clone() };
                    let id = *next;
                    out.push(repeat(id, &hi, inner(&inside, r, next)));
                }
                8 => {
                    let guard = Guard::not_negative(&me.index(r).plus(-5));
                    out.push(Stmt::If(guard, inner(&me, r, next), inner(&me, r, next)));
                }
                _ => {
                    let truth = ElemTy::scalar(Bool);
                    let c = Expr::Op(ScalarOp::Lt, truth, vec![me.expr(r, 1), me.expr(r, 1)]);
                    out.push(Stmt::Branch(c, inner(&me, r, next), inner(&me, r, next)));
                }
            }
        }
        out
    }
}

/// Interprets the code of one work-item. A barrier changes all shared memory, as if other
/// work-items had stored to it.
struct Machine {
    memory: BTreeMap<Mem, Vec<i32>>,
    regs: BTreeMap<u32, Vec<i32>>,
    vars: BTreeMap<u32, i64>,
    /// Shared memories that the code stores to.
    written: Vec<Mem>,
}

impl Machine {
    fn new(code: &Block) -> Machine {
        let cells =
            |f: &dyn Fn(i32) -> i32| (0..i32::try_from(LEN).expect("small")).map(f).collect();
        let memory = BTreeMap::from([
            (INPUT, cells(&|k| (k * 7 + 3) % 48)),
            (OUT, cells(&|k| 100 + k)),
            (TILE, cells(&|k| 1000 * k)),
            (OWN, cells(&|k| -k * k)),
        ]);
        let written = Effects::of(code).stored;
        let written = [OUT, TILE].into_iter().filter(|m| written.contains(m)).collect();
        Machine { memory, regs: BTreeMap::new(), vars: BTreeMap::new(), written }
    }

    fn index(&self, i: &Index) -> i64 {
        let value = |v: &Var| Some(self.vars.get(&v.id).copied().unwrap_or(1));
        let known = i.map_data(&|e| int(i64::from(self.expr(e)[0])));
        let (mut rest, mut sum) = (known.clone(), 0);
        for (a, c) in known.terms() {
            if let Atom::Data(d) = a {
                let Expr::Lit(l) = &*d.value else { panic!("a number") };
                sum += c * i64::from(number(l));
                rest = rest.sub(&known.part(a));
            }
        }
        sum + rest.eval(&value).expect("a value")
    }

    fn holds(&self, g: &Guard) -> bool {
        g.0.iter().all(|i| self.index(i) >= 0)
    }

    fn place(&self, i: &Index) -> usize {
        usize::try_from(self.index(i)).expect("inside the array")
    }

    fn expr(&self, e: &Expr) -> Vec<i32> {
        match e {
            Expr::Lit(l) => vec![number(l)],
            Expr::Reg(r) => self.regs[&r.id].clone(),
            Expr::Load(m, t, i) => {
                let at = self.place(i);
                self.memory[m][at..at + t.width].to_vec()
            }
            Expr::Op(op, _, es) => {
                let (a, b) = (self.expr(&es[0])[0], self.expr(&es[1])[0]);
                vec![match op {
                    ScalarOp::Add => a.wrapping_add(b),
                    ScalarOp::Mul => a.wrapping_mul(b),
                    _ => i32::from(a < b),
                }]
            }
            Expr::Guarded(g, a, b) => self.expr(if self.holds(g) { a } else { b }),
            Expr::Vector(es) => es.iter().flat_map(|e| self.expr(e)).collect(),
            Expr::Splat(e, w) => vec![self.expr(e)[0]; *w],
            Expr::Lane(e, k) => vec![self.expr(e)[*k]],
            Expr::Arg(..)
            | Expr::Index(..)
            | Expr::If(..)
            | Expr::Checked(..)
            | Expr::Products(..)
            | Expr::Matrices(..) => {
                panic!("not made here")
            }
        }
    }

    fn run(&mut self, b: &Block) {
        for s in b {
            match s {
                Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) => {
                    let x = self.expr(e);
                    self.regs.insert(r.id, x);
                }
                Stmt::Store(m, i, e) => {
                    let x = self.expr(e);
                    let at = self.place(i);
                    assert!(at.is_multiple_of(x.len()), "vectors are aligned");
                    self.memory.get_mut(m).expect("an array")[at..at + x.len()].copy_from_slice(&x);
                }
                Stmt::Loop { var, lo, hi, body, .. } => {
                    for k in self.index(lo)..self.index(hi) {
                        self.vars.insert(var.id, k);
                        self.run(body);
                    }
                }
                Stmt::If(g, a, b) => {
                    let branch = if self.holds(g) { a } else { b };
                    self.run(branch);
                }
                Stmt::Branch(c, a, b) => {
                    let branch = if self.expr(c)[0] != 0 { a } else { b };
                    self.run(branch);
                }
                Stmt::Barrier { .. } => {
                    for m in &self.written {
                        let cells = self.memory.get_mut(m).expect("an array");
                        cells.iter_mut().for_each(|x| *x = x.wrapping_mul(3).wrapping_add(1));
                    }
                }
                Stmt::Decl(_, None) | Stmt::While(..) | Stmt::Once(_) | Stmt::Atomic(..) => {
                    panic!("not made here")
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn improved_code_computes_the_same(seed in any::<u64>()) {
        let maker = Maker { vars: vec![], fixed: vec![], changing: vec![] };
        let code = maker.block(&mut Random(seed), 3, &mut 0);
        let (mut before, mut after) = (Machine::new(&code), Machine::new(&code));
        before.run(&code);
        after.run(&improved(code));
        prop_assert_eq!(before.memory, after.memory);
    }
}

/// Returns the lifetimes of two arrays of a group in a loop: the first one is stored under a guard and loaded for the second one.
fn lifetimes(guard: Guard) -> Vec<(usize, usize)> {
    let (first, second) = (Mem::Local(0), Mem::Local(1));
    let items = |s: Stmt| Stmt::Loop {
        kind: LoopKind::Lcl(0),
        var: var(2),
        lo: Index::from(0),
        hi: Index::from(4),
        body: vec![s],
    };
    let copy = |to, from| items(Stmt::Store(to, at(2), load(from, &at(2))));
    let body = vec![
        Stmt::If(guard, vec![copy(first, INPUT)], vec![]),
        copy(second, first),
        copy(OUT, second),
    ];
    let all = vec![Stmt::Loop {
        kind: LoopKind::Seq,
        var: var(1),
        lo: Index::from(0),
        hi: Index::from(4),
        body,
    }];
    super::lifetimes::of_arrays(&all).into_values().collect()
}

#[test]
fn arrays_of_an_iteration_live_shorter_than_the_loop() {
    assert_eq!(lifetimes(Guard(vec![])), [(1, 2), (2, 3)]);
    // What only the first iteration stores is needed in all of them.
    assert_eq!(lifetimes(Guard(vec![at(1).times(-1)])), [(1, 3), (2, 3)]);
}
