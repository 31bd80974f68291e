//! Products by matrix instructions: their kernels are executed here, all work-items of a group in step, since the CPU does not have the
//! instructions.

use crate::check::{Kernels, array, kernels};
use insta::Settings;
use patsat::calculus::size::{Size, SizeEnv};
use patsat::calculus::term::Term;
use patsat::calculus::text::{Context, read_term};
use patsat::calculus::ty::Ty;
use patsat::diag::{Limits, Source};
use patsat::kernel::ir::index::{Guard, Index};
use patsat::kernel::ir::{Block, BufferRole, Expr, LoopKind, Mem, Program, Stmt, WARP};
use patsat::kernel::{self, DeviceLimits, Options};
use patsat::lang::typed::ScalarOp;
use patsat::lang::types::ScalarType;
use std::collections::HashMap;

/// The work-items of a group, and the memory of the device.
struct Group {
    /// Values of the variables and registers of each work-item.
    vars: Vec<HashMap<u32, i64>>,
    regs: Vec<HashMap<u32, Vec<f32>>>,
    memory: HashMap<Mem, Vec<f32>>,
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

    fn expr(&self, e: &Expr, item: usize) -> Vec<f32> {
        match e {
            #[expect(clippy::cast_possible_truncation, reason = "the literal is an f32")]
            Expr::Lit(l) => vec![l.as_float().expect("a float") as f32],
            Expr::Reg(r) => self.regs[item][&r.id].clone(),
            Expr::Load(m, t, i) => {
                let at = self.place(i, item);
                self.memory[m][at..at + t.width].to_vec()
            }
            Expr::Op(ScalarOp::Add, _, es) => {
                vec![self.expr(&es[0], item)[0] + self.expr(&es[1], item)[0]]
            }
            Expr::Guarded(g, a, b) => self.expr(if self.holds(g, item) { a } else { b }, item),
            Expr::Splat(e, w) => vec![self.expr(e, item)[0]; *w],
            Expr::Vector(es) => es.iter().flat_map(|e| self.expr(e, item)).collect(),
            Expr::Lane(e, k) => vec![self.expr(e, item)[*k]],
            Expr::Products(es) => self.products(es, item),
            _ => panic!("not made here: {e}"),
        }
    }

    /// What the work-items of a warp compute together, as [`Expr::Products`] says.
    fn products(&self, es: &[Expr], item: usize) -> Vec<f32> {
        let warp = item - item % usize::try_from(WARP).expect("a number");
        let (g, q) = (item % 32 / 4, item % 4);
        let a = |i: usize, k: usize| self.expr(&es[1], warp + i % 8 * 4 + k % 4)[k / 4 * 2 + i / 8];
        let b = |k: usize, j: usize| self.expr(&es[2], warp + j * 4 + k % 4)[k / 4];
        let mut c = self.expr(&es[0], item);
        for (lane, c) in c.iter_mut().enumerate() {
            let (i, j) = (g + lane / 2 * 8, 2 * q + lane % 2);
            *c += (0..8).map(|k| a(i, k) * b(k, j)).sum::<f32>();
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
                Stmt::Decl(_, None) | Stmt::Barrier { .. } => {}
                _ => panic!("not made here"),
            }
        }
    }
}

/// Executes the only kernel of a program whose inputs are called `A`, `B` and `C`.
fn execute(ir: &Program, inputs: &[(&str, &[f32])]) -> Vec<f32> {
    let kernel = &ir.kernels[0];
    let mut memory = HashMap::new();
    let mut out = None;
    for (at, b) in ir.buffers.iter().enumerate() {
        let found = match &b.role {
            BufferRole::Input(name, _) => inputs.iter().find(|x| *x.0 == **name).map(|x| x.1),
            _ => None,
        };
        out = if found.is_none() { Some(Mem::Global(at)) } else { out };
        let data = found.map_or_else(|| vec![f32::NAN; b.array.len], <[f32]>::to_vec);
        memory.insert(Mem::Global(at), data);
    }
    for (at, a) in kernel.locals.iter().enumerate() {
        memory.insert(Mem::Local(at), vec![f32::NAN; a.len]);
    }
    let items: usize = kernel.group.iter().product();
    let (vars, regs) = (vec![HashMap::new(); items], vec![HashMap::new(); items]);
    let mut group = Group { vars, regs, memory };
    group.run(&kernel.body, &(0..items).collect::<Vec<_>>());
    group.memory.remove(&out.expect("a result")).expect("a buffer")
}

/// Tiles of 32 by 32, blocks of 16, parts of 4 by 4: two warps.
fn product([n, m, k]: [u64; 3], block: u64, staging: &str) -> Kernels {
    let (r, q, kr) = (n.next_multiple_of(32), m.next_multiple_of(32), k.next_multiple_of(block));
    let program = "entry product [n][m][k] (A: [n][k]f32) (B: [k][m]f32) : [n][m]f32 =
        map (\\row -> map (\\col -> reduce (+) 0 (map2 (*) row col)) (transpose B)) A";
    let term = format!(
        "tiled 32 32 {r} {q} id id (mapWrg 1 (mapWrg 0 (blocked {block} {kr} ({staging} id) ({staging} id) \
         (spreadFragments 4 4 2 2 (toPrivate (mapLcl 0 sumProducts))) 0.0 id))) . fork A (transpose . B)"
    );
    let inputs = [("A", array(&[n, k])), ("B", array(&[k, m]))];
    kernels(program, &[("n", n), ("m", m), ("k", k)], &inputs, &term)
}

/// A matrix of small whole numbers.
fn matrix(n: u64, m: u64, seed: u64) -> Vec<f32> {
    let element =
        |i: u64| f32::from(u8::try_from((i * i + seed * i + seed) % 17).expect("small")) - 8.0;
    (0..n * m).map(element).collect()
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
        for staging in ["toLocal", "toLocalAhead"] {
            let [n, m, k] = sizes;
            let (a, b) = (matrix(n, k, 3), matrix(k, m, 5));
            let out = execute(&product(sizes, block, staging).ir, &[("A", &a), ("B", &b)]);
            let [n, m, k] = sizes.map(|n| usize::try_from(n).expect("small"));
            for i in 0..n {
                for j in 0..m {
                    let sum: f32 = (0..k).map(|p| a[i * k + p] * b[p * m + j]).sum();
                    assert!((out[i * m + j] - sum).abs() == 0.0, "{sizes:?} {staging}: {i} {j}");
                }
            }
        }
    }
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
    let plan = product([64, 64, 64], 8, "toLocalAhead").plan;
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("fragments", plan.source));
}

fn refused(term: &str, k: u64) -> String {
    let inputs = [("A", array(&[64, k])), ("B", array(&[k, 64]))];
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
    let term = |shares: &str, k: u64| {
        format!(
            "tiled 64 64 64 64 id id (mapWrg 1 (mapWrg 0 (blocked 16 {k} (toLocal id) (toLocal id) \
             ({shares} (toPrivate (mapLcl 0 sumProducts))) 0.0 id))) . fork A (transpose . B)"
        )
    };
    let of = |shares: &str, k: u64| refused(&term(shares, k.next_multiple_of(16)), k);
    assert!(of("spreadWarps 4 4 2 2", 64).contains("no fragments"));
    assert!(of("spread 4 4 2 2", 64).contains("no fragments"));
    assert!(of("spreadFragments 4 4 2 2", 40).contains("the end of a reduction"));
    assert!(of("spreadFragments 1 4 1 2", 64).contains("no whole number of fragments"));
}
