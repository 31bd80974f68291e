//! Products by matrix instructions: their kernels are executed here, all work-items of a group in step, since the CPU does not have the
//! instructions.

use crate::check::{Kernels, array, kernels, kernels_for};
use half::f16;
use insta::Settings;
use patsat::calculus::op::products::Products;
use patsat::calculus::size::{Size, SizeEnv};
use patsat::calculus::term::Term;
use patsat::calculus::text::{Context, read_term};
use patsat::calculus::ty::Ty;
use patsat::diag::{Limits, Source};
use patsat::kernel::ir::facts::Guard;
use patsat::kernel::ir::index::Index;
use patsat::kernel::ir::{Block, BufferRole, Expr, LoopKind, Mem, MemArray, Program, Stmt, WARP};
use patsat::kernel::{self, DeviceLimits, Options};
use patsat::lang::typed::ScalarOp;
use patsat::lang::types::ScalarType;
use std::collections::HashMap;

/// The work-items of a group, and the memory of the device.
struct Group {
    /// Values of the variables and registers of each work-item.
    vars: Vec<HashMap<u32, i64>>,
    regs: Vec<HashMap<u32, Vec<u32>>>,
    memory: HashMap<Mem, Vec<u32>>,
    arrays: Vec<MemArray>,
    /// Copies that arrive late: at which of the next barriers, where, and what.
    under_way: Vec<(usize, Mem, usize, Vec<u32>)>,
}

/// The bits of each lane of the sum of two vectors.
fn sum(t: ScalarType, a: &[u32], b: &[u32]) -> Vec<u32> {
    let add = |(a, b): (&u32, &u32)| match t {
        ScalarType::F32 => (f32::from_bits(*a) + f32::from_bits(*b)).to_bits(),
        ScalarType::I32 => a.wrapping_add(*b),
        _ => panic!("not made here: {t}"),
    };
    a.iter().zip(b).map(add).collect()
}

/// The numbers in a word, as they are multiplied.
fn parts(of: Products, word: u32) -> Vec<f64> {
    match of {
        Products::F32 => vec![f32::from_bits(word).into()],
        Products::F16 => {
            let bits = word.to_le_bytes();
            bits.chunks(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f64()).collect()
        }
        Products::BF16 => {
            [word << 16, word & 0xffff_0000].map(|b| f32::from_bits(b).into()).to_vec()
        }
        Products::I8 => word.to_le_bytes().map(|b| f64::from(b.cast_signed())).to_vec(),
    }
}

impl Group {
    fn index(&self, i: &Index, item: usize) -> i64 {
        i.eval(&|v| self.vars[item].get(&v.id).copied()).expect("known variables")
    }

    fn place(&self, i: &Index, item: usize) -> usize {
        usize::try_from(self.index(i, item)).expect("an index")
    }

    fn holds(&self, g: &Guard, item: usize) -> bool {
        g.0.iter().all(|i| self.index(i, item) >= 0)
    }

    /// The bits of each lane of a value.
    fn expr(&self, e: &Expr, item: usize) -> Vec<u32> {
        match e {
            Expr::Lit(l) => vec![u32::try_from(l.bits).expect("a narrow literal")],
            Expr::Reg(r) => self.regs[item][&r.id].clone(),
            Expr::Load(m, t, i) => {
                let at = self.place(i, item);
                self.memory[m][at..at + t.width].to_vec()
            }
            Expr::Op(op, t, es) => {
                let parts: Vec<Vec<u32>> = es.iter().map(|e| self.expr(e, item)).collect();
                let bits = es[0].ty().scalar.bits();
                let pairs = || parts[0].iter().zip(&parts[1]);
                match op {
                    ScalarOp::Add => sum(t.scalar, &parts[0], &parts[1]),
                    ScalarOp::Shl => pairs().map(|(a, b)| a << b).collect(),
                    ScalarOp::BitOr => pairs().map(|(a, b)| a | b).collect(),
                    ScalarOp::Cast(_) => parts[0].clone(),
                    ScalarOp::Bits => {
                        let word = |lanes: &[u32]| {
                            let put = |w: u64, b: &u32| w << bits | u64::from(*b);
                            let all = lanes.iter().rev().fold(0, put);
                            u32::try_from(all).expect("a word")
                        };
                        parts[0].chunks(t.scalar.bits() / bits).map(word).collect()
                    }
                    _ => panic!("not made here: {e}"),
                }
            }
            Expr::Guarded(g, a, b) => self.expr(if self.holds(g, item) { a } else { b }, item),
            Expr::Splat(e, w) => vec![self.expr(e, item)[0]; *w],
            Expr::Vector(es) => es.iter().flat_map(|e| self.expr(e, item)).collect(),
            Expr::Lane(e, k) => vec![self.expr(e, item)[*k]],
            Expr::Products(of, es) => self.products(*of, es, item),
            Expr::Matrices(turned, e) => self.matrices(*turned, e, item),
            _ => panic!("not made here: {e}"),
        }
    }

    /// What the work-items of a warp load together, as [`Expr::Matrices`] says.
    fn matrices(&self, turned: bool, load: &Expr, item: usize) -> Vec<u32> {
        let warp = item - item % usize::try_from(WARP).expect("a number");
        let (g, q) = (item % 32 / 4, item % 4);
        let element = |m: usize, r: usize, k: usize| self.expr(load, warp + 8 * m + r)[k];
        let word = |m| match turned {
            true => element(m, 2 * q, g) | element(m, 2 * q + 1, g) << 16,
            false => element(m, g, q),
        };
        (0..4).map(word).collect()
    }

    /// What the work-items of a warp compute together, as [`Expr::Products`] says.
    fn products(&self, of: Products, es: &[Expr], item: usize) -> Vec<u32> {
        let warp = item - item % usize::try_from(WARP).expect("a number");
        let (g, q) = (item % 32 / 4, item % 4);
        let a = |i: usize, k: usize| self.expr(&es[1], warp + i % 8 * 4 + k % 4)[k / 4 * 2 + i / 8];
        let b = |k: usize, j: usize| self.expr(&es[2], warp + j * 4 + k % 4)[k / 4];
        let mut c = self.expr(&es[0], item);
        for (lane, c) in c.iter_mut().enumerate() {
            let (i, j) = (g + lane / 2 * 8, 2 * q + lane % 2);
            let product = |k| -> f64 {
                let (a, b) = (parts(of, a(i, k)), parts(of, b(k, j)));
                a.iter().zip(b).map(|(a, b)| a * b).sum()
            };
            let more: f64 = (0..8).map(product).sum();
            #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
            let more = match of.sum() {
                ScalarType::F32 => (more as f32).to_bits(),
                _ => (more as i32).cast_unsigned(),
            };
            *c = sum(of.sum(), &[*c], &[more])[0];
        }
        c
    }

    fn run(&mut self, block: &Block, active: &[usize]) {
        for s in block {
            match s {
                Stmt::Decl(r, Some(e)) | Stmt::Set(r, e) => {
                    let values: Vec<_> = active.iter().map(|item| self.expr(e, *item)).collect();
                    for (item, value) in active.iter().zip(values) {
                        self.regs[*item].insert(r.id, value);
                    }
                }
                Stmt::Store(m, i, e) => {
                    for item in active {
                        let (at, x) = (self.place(i, *item), self.expr(e, *item));
                        if let Mem::Local(a) = m
                            && self.arrays[*a].ahead > 0
                        {
                            self.under_way.push((self.arrays[*a].ahead, *m, at, x));
                            continue;
                        }
                        self.memory.get_mut(m).expect("an array")[at..at + x.len()]
                            .copy_from_slice(&x);
                    }
                }
                Stmt::Loop { kind, var, lo, hi, body } => {
                    // Work-items may have bounds of their own. Those of a loop over work-items run side by side.
                    let bounds: Vec<(usize, i64, i64)> = active
                        .iter()
                        .map(|item| (*item, self.index(lo, *item), self.index(hi, *item)))
                        .collect();
                    let number = |item: usize| i64::try_from(item).expect("a number");
                    let first = bounds.iter().map(|b| b.1).min().unwrap_or(0);
                    let last = bounds.iter().map(|b| b.2).max().unwrap_or(0);
                    let together = *kind == LoopKind::Lcl(0);
                    for k in first..if together { first + 1 } else { last } {
                        let value = |item: usize| if together { number(item) } else { k };
                        let inside: Vec<usize> = (bounds.iter())
                            .filter(|(item, lo, hi)| (*lo..*hi).contains(&value(*item)))
                            .map(|b| b.0)
                            .collect();
                        for item in &inside {
                            self.vars[*item].insert(var.id, value(*item));
                        }
                        if !inside.is_empty() {
                            self.run(body, &inside);
                        }
                    }
                }
                Stmt::If(g, a, b) => {
                    let (then, otherwise): (Vec<usize>, Vec<usize>) =
                        active.iter().partition(|item| self.holds(g, **item));
                    for (items, block) in [(then, a), (otherwise, b)] {
                        if !items.is_empty() {
                            self.run(block, &items);
                        }
                    }
                }
                Stmt::Once(b) => self.run(b, &active[..1]),
                Stmt::Decl(_, None) => {}
                Stmt::Barrier { .. } => {
                    for (barriers, m, at, x) in std::mem::take(&mut self.under_way) {
                        match barriers {
                            1 => self.memory.get_mut(&m).expect("an array")[at..at + x.len()]
                                .copy_from_slice(&x),
                            _ => self.under_way.push((barriers - 1, m, at, x)),
                        }
                    }
                }
                _ => panic!("not made here"),
            }
        }
    }
}

/// The bits of a small whole number.
fn bits(t: ScalarType, x: i8) -> u32 {
    match t {
        ScalarType::F16 => f16::from_f32(x.into()).to_bits().into(),
        ScalarType::BF16 => f32::from(x).to_bits() >> 16,
        ScalarType::F32 => f32::from(x).to_bits(),
        ScalarType::I8 => x.cast_unsigned().into(),
        _ => i32::from(x).cast_unsigned(),
    }
}

/// Executes the only kernel of a program whose inputs are called `A`, `B` and `C`.
fn execute(ir: &Program, inputs: &[(&str, &[i8])]) -> Vec<u32> {
    let kernel = &ir.kernels[0];
    let mut memory = HashMap::new();
    let mut out = None;
    for (at, b) in ir.buffers.iter().enumerate() {
        let found = match &b.role {
            BufferRole::Input(name, _) => inputs.iter().find(|x| *x.0 == **name).map(|x| x.1),
            _ => None,
        };
        out = if found.is_none() { Some(Mem::Global(at)) } else { out };
        let unknown = || vec![f32::NAN.to_bits(); b.array.len];
        let data = found.map(|xs| xs.iter().map(|x| bits(b.array.scalar, *x)).collect());
        memory.insert(Mem::Global(at), data.unwrap_or_else(unknown));
    }
    for (at, a) in kernel.locals.iter().enumerate() {
        memory.insert(Mem::Local(at), vec![f32::NAN.to_bits(); a.len]);
    }
    let items: usize = kernel.group.iter().product();
    let (vars, regs) = (vec![HashMap::new(); items], vec![HashMap::new(); items]);
    let arrays = kernel.locals.clone();
    let mut group = Group { vars, regs, memory, arrays, under_way: vec![] };
    group.run(&kernel.body, &(0..items).collect::<Vec<_>>());
    group.memory.remove(&out.expect("a result")).expect("a buffer")
}

/// A tile of a result, a block of the reduction, and the part of a work-item.
struct Shape {
    tile: u64,
    block: u64,
    part: &'static str,
}

impl Shape {
    /// Tiles of 32 by 32, parts of 4 by 4: two warps.
    fn of(block: u64) -> Shape {
        Shape { tile: 32, block, part: "4 4 2 2" }
    }
}

fn product_of(of: Products, sizes: [u64; 3], shape: &Shape, staging: &str) -> Kernels {
    product_for(DeviceLimits::default(), of, sizes, shape, staging)
}

/// As [`product_of`], for a device.
fn product_for(
    device: DeviceLimits,
    of: Products,
    [n, m, k]: [u64; 3],
    shape: &Shape,
    staging: &str,
) -> Kernels {
    let Shape { tile, block, part } = shape;
    let (r, q, kr) =
        (n.next_multiple_of(*tile), m.next_multiple_of(*tile), k.next_multiple_of(*block));
    let (t, s) = (of.operand(), of.sum());
    let times = if t == s { "*".to_owned() } else { format!("\\a b -> {s}.{t} a * {s}.{t} b") };
    let program = format!(
        "entry product [n][m][k] (A: [n][k]{t}) (B: [k][m]{t}) : [n][m]{s} =
        map (\\row -> map (\\col -> reduce (+) 0 (map2 ({times}) row col)) (transpose B)) A"
    );
    let zero = if s.is_float() { "0.0" } else { "0" };
    let term = format!(
        "tiled {tile} {tile} {r} {q} id id (mapWrg 1 (mapWrg 0 (blocked {block} {kr} ({staging} id) ({staging} id) \
         (spreadFragments {part} (toPrivate (mapLcl 0 sumProducts))) {zero} id))) . fork A (transpose . B)"
    );
    let matrix = |n, m| {
        let row = Ty::array(&Size::constant(m), &Ty::Scalar(t));
        Ty::array(&Size::constant(n), &row)
    };
    let inputs = [("A", matrix(n, k)), ("B", matrix(k, m))];
    kernels_for(device, &program, &[("n", n), ("m", m), ("k", k)], &inputs, &term)
}

/// A matrix of small whole numbers.
fn matrix(n: u64, m: u64, seed: u64) -> Vec<i8> {
    let element = |i: u64| i8::try_from((i * i + seed * i + seed) % 17).expect("small") - 8;
    (0..n * m).map(element).collect()
}

/// Checks the result of a product of whole numbers.
fn check_made(made: &Kernels, of: Products, sizes: [u64; 3]) {
    let [n, m, k] = sizes;
    let (a, b) = (matrix(n, k, 3), matrix(k, m, 5));
    let out = execute(&made.ir, &[("A", &a), ("B", &b)]);
    let [n, m, k] = sizes.map(|n| usize::try_from(n).expect("small"));
    for i in 0..n {
        for j in 0..m {
            let sum: i32 = (0..k).map(|p| i32::from(a[i * k + p]) * i32::from(b[p * m + j])).sum();
            let found = match of.sum() {
                ScalarType::F32 => f64::from(f32::from_bits(out[i * m + j])),
                _ => out[i * m + j].cast_signed().into(),
            };
            let right = (found - f64::from(sum)).abs() == 0.0;
            assert!(right, "{of:?} {sizes:?}: {i} {j}: {found}, not {sum}: {}", made.plan.source);
        }
    }
}

fn check(of: Products, sizes: [u64; 3], shape: &Shape) {
    for staging in ["toLocal", "toLocalAhead"] {
        check_made(&product_of(of, sizes, shape, staging), of, sizes);
    }
}

/// Where a device copies blocks by itself, as many are on their way as local memory holds, up to three.
#[test]
fn blocks_take_turns() {
    let of = |bytes, k| {
        let device = DeviceLimits {
            copies_ahead: true,
            access_bytes: 16,
            local_mem_bytes: bytes,
            ..DeviceLimits::default()
        };
        let sizes = [64, 32, k];
        let made = product_for(device, Products::F16, sizes, &Shape::of(16), "toLocalAhead");
        check_made(&made, Products::F16, sizes);
        let arrivals = (0..4).filter(|n| made.plan.source.contains(&format!("copies_arrive({n})")));
        (made.ir.kernels[0].local_bytes(), arrivals.collect::<Vec<i32>>())
    };
    let block = 2 * 2 * 32 * 16;
    for (bytes, k, held) in [
        (1 << 15, 160, 4),
        (1 << 15, 64, 4),
        (1 << 15, 48, 3),
        (1 << 15, 32, 2),
        (4 * block - 1, 160, 3),
        (3 * block - 1, 160, 2),
    ] {
        assert_eq!(of(bytes, k), (held * block, vec![i32::try_from(held).expect("few") - 2]));
    }
    assert_eq!(of(1 << 15, 16), (block, vec![0]));
}

#[test]
fn warps_compute_products() {
    for (sizes, block) in [
        ([32, 32, 16], 16),
        ([64, 64, 64], 16),
        ([64, 96, 40], 8),
        ([40, 24, 48], 16),
        ([33, 31, 8], 8),
        ([3, 5, 32], 32),
    ] {
        check(Products::F32, sizes, &Shape::of(block));
    }
}

/// What a copy of a block has past the end of the rows is zero.
#[test]
fn blocks_may_end_behind_the_rows() {
    for of in [Products::F32, Products::F16, Products::BF16, Products::I8] {
        for (sizes, block) in
            [([64, 64, 72], 32), ([40, 24, 100], 32), ([33, 31, 37], 32), ([32, 32, 5], 64)]
        {
            check(of, sizes, &Shape::of(block));
        }
    }
    let device = DeviceLimits { copies_ahead: true, access_bytes: 16, ..DeviceLimits::default() };
    for (of, sizes) in [(Products::F32, [60, 52, 100]), (Products::F16, [60, 56, 104])] {
        let made = product_for(device.clone(), of, sizes, &Shape::of(32), "toLocalAhead");
        check_made(&made, of, sizes);
        let source = &made.plan.source;
        assert!(source.contains("copy_ahead_16("), "{source}");
    }
}

/// Elements of fewer bytes are staged in words. Of rows of an odd length, no words lie in memory.
#[test]
fn warps_compute_products_of_narrow_elements() {
    for (sizes, block) in [
        ([32, 32, 64], 32),
        ([64, 64, 64], 32),
        ([40, 24, 96], 32),
        ([33, 31, 64], 64),
        ([3, 5, 64], 64),
    ] {
        for of in [Products::F16, Products::BF16, Products::I8] {
            check(of, sizes, &Shape::of(block));
        }
    }
    check(Products::F16, [40, 31, 48], &Shape::of(16));
}

/// The sums of long parts are computed in turns, unless instructions add to them.
#[test]
fn long_parts_have_few_sums_at_a_time() {
    let long = |block, part| Shape { tile: 64, block, part };
    check(Products::F32, [64, 64, 16], &long(16, "8 16 4 4"));
    check(Products::F16, [64, 128, 64], &long(32, "8 16 1 2"));
    check(Products::I8, [64, 128, 64], &long(32, "8 16 1 4"));
}

/// Operands are loaded four matrices at once where rows of them lie in memory: transposed if those are rows of a block. Others are loaded
/// word by word.
#[test]
fn operands_are_loaded_as_matrices() {
    let source = |of, block, part| {
        let shape = Shape { tile: 32, block, part };
        product_of(of, [64, 64, 64], &shape, "toLocal").plan.source.clone()
    };
    let counts = |s: &str| {
        ["= load_matrices(", "= load_turned_matrices("].map(|call| s.matches(call).count())
    };
    assert_eq!(counts(&source(Products::F16, 16, "4 4 1 2")), [2, 1]);
    assert_eq!(counts(&source(Products::I8, 32, "4 4 1 4")), [2, 0]);
    assert_eq!(counts(&source(Products::F32, 8, "4 4 1 4").replace("as_float4(", "")), [2, 0]);
}

/// The rows of a product may be transposed by their loads, too.
#[test]
fn rows_of_halves_are_transposed() {
    let program = "entry product [n][m][k] (A: [k][n]f16) (B: [k][m]f16) : [n][m]f32 = map (\\row -> map (\\col -> reduce (+) 0
        (map2 (\\a b -> f32.f16 a * f32.f16 b) row col)) (transpose B)) (transpose A)";
    let term = "tiled 32 32 64 64 id id (mapWrg 1 (mapWrg 0 (blocked 16 48 (toLocalAhead id) (toLocalAhead id) \
        (spreadFragments 4 4 1 2 (toPrivate (mapLcl 0 sumProducts))) 0.0 id))) . fork (transpose . A) (transpose . B)";
    let row = Ty::array(&Size::constant(64), &Ty::Scalar(ScalarType::F16));
    let t = Ty::array(&Size::constant(48), &row);
    let inputs = [("A", t.clone()), ("B", t)];
    let made = kernels(program, &[("n", 64), ("m", 64), ("k", 48)], &inputs, term);
    assert!(!made.plan.source.contains("= load_matrices("), "{}", made.plan.source);
    let (a, b) = (matrix(48, 64, 3), matrix(48, 64, 5));
    let out = execute(&made.ir, &[("A", &a), ("B", &b)]);
    for (at, found) in out.iter().enumerate() {
        let product = |p: usize| i32::from(a[p * 64 + at / 64]) * i32::from(b[p * 64 + at % 64]);
        let sum: i32 = (0..48).map(product).sum();
        let right = (f64::from(f32::from_bits(*found)) - f64::from(sum)).abs() == 0.0;
        assert!(right, "{at}: {}, not {sum}", f32::from_bits(*found));
    }
}

/// Columns that no instruction could transpose together.
#[test]
fn halves_in_other_runs_are_refused() {
    let term = "tiled 32 32 64 64 id id (mapWrg 1 (mapWrg 0 (blocked 16 64 (toLocal id) (toLocal id) \
        (spreadFragments 4 4 1 4 (toPrivate (mapLcl 0 sumProducts))) 0.0 id))) . fork A (transpose . B)";
    assert!(refused_of(ScalarType::F16, term, 64).contains("no matrices"));
}

/// All work-items of a warp are on one side of a condition on what the kernel does not change.
#[test]
fn products_under_a_condition_are_proved() {
    let program = "entry product [n][m][k] (A: [n][k]f32) (B: [k][m]f32) (C: [n][m]f32) (s: [1]i32) : [n][m]f32 =
        if s[0] > 0 then map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A else C";
    let term = "cond ((\\x -> x > 0) . the . s) (tiled 32 32 64 64 id id (mapWrg 1 (mapWrg 0 (blocked 16 64 (toLocal id) \
        (toLocal id) (spreadFragments 4 4 2 2 (toPrivate (mapLcl 0 sumProducts))) 0.0 id))) . fork A (transpose . B)) \
        (mapGlb 1 (mapGlb 0 id) . C)";
    let [a, c] = [[64, 64], [64, 64]].map(|shape| array(&shape));
    let s = Ty::array(&Size::constant(1), &Ty::Scalar(ScalarType::I32));
    let inputs = [("A", a.clone()), ("B", a), ("C", c), ("s", s)];
    let made = kernels(program, &[("n", 64), ("m", 64), ("k", 64)], &inputs, term);
    assert!(made.plan.source.contains("mma"), "{}", made.plan.source);
}

#[test]
fn the_text_of_products() {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, of, block) in [
        ("fragments", Products::F32, 8),
        ("fragments_f16", Products::F16, 16),
        ("fragments_bf16", Products::BF16, 16),
    ] {
        let plan = product_of(of, [64, 64, 64], &Shape::of(block), "toLocalAhead").plan;
        settings.bind(|| insta::assert_snapshot!(name, plan.source));
    }
}

fn refused(term: &str, k: u64) -> String {
    refused_of(ScalarType::F32, term, k)
}

fn refused_of(t: ScalarType, term: &str, k: u64) -> String {
    let matrix =
        |n, m| Ty::array(&Size::constant(n), &Ty::array(&Size::constant(m), &Ty::Scalar(t)));
    let inputs = [("A", matrix(64, k)), ("B", matrix(k, 64))];
    let inputs = inputs.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect();
    let context = Context { inputs, variables: None };
    let term = read_term(&Source::new("term", term), &Ty::Unit, &context).expect("a term");
    let term: Term = term.expand().and_then(|t| t.flat()).expect("definitions");
    let options = Options::new("product", DeviceLimits::default(), &Limits::default());
    kernel::lower(&term, &SizeEnv::default(), &options).expect_err("no kernel").message
}

/// Work-items of a warp that do not share rows and columns as the instructions need, and sums that end within a block.
#[test]
fn other_parts_are_refused() {
    let term = |shares: &str, copy: &str, k: u64| {
        format!(
            "tiled 64 64 64 64 id id (mapWrg 1 (mapWrg 0 (blocked 16 {k} (toLocal {copy}) (toLocal {copy}) \
             ({shares} (toPrivate (mapLcl 0 sumProducts))) 0.0 id))) . fork A (transpose . B)"
        )
    };
    let of = |shares: &str, k: u64| refused(&term(shares, "id", k.next_multiple_of(16)), k);
    assert!(of("spreadWarps 4 4 2 2", 64).contains("no fragments"));
    assert!(of("spread 4 4 2 2", 64).contains("no fragments"));
    // What is computed of zeros need not be zero.
    let computed = term("spreadFragments 4 4 2 2", "(mapSeq (mapSeq abs))", 48);
    assert!(refused(&computed, 40).contains("the end of a reduction"));
    assert!(of("spreadFragments 1 4 1 2", 64).contains("no whole number of fragments"));
}
