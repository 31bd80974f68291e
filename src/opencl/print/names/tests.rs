//! Tests of where quotients and remainders get their names.

use super::super::print;
use crate::kernel::facts::Guard;
use crate::kernel::index::{Index, Var};
use crate::kernel::ir::testing::kernel;
use crate::kernel::ir::{
    Block, Buffer, BufferRole, Control, ElemTy, Expr, Kernel, LoopKind, Mem, MemArray, Program,
    Stmt,
};
use crate::lang::types::ScalarType::F32;

fn var(id: u32, n: i64) -> Var {
    Var { id, name: format!("i{id}").into(), lo: 0, hi: n - 1 }
}

fn at(id: u32) -> Index {
    Index::from(var(id, 1000))
}

fn copy(to: &Index, from: &Index) -> Stmt {
    let x = Expr::Load(Mem::Global(0), ElemTy::scalar(F32), from.clone());
    Stmt::Store(Mem::Global(1), to.clone(), x)
}

fn repeat(id: u32, n: i64, body: Block) -> Stmt {
    let (lo, hi) = (Index::from(0), Index::from(n));
    Stmt::Loop { kind: LoopKind::Seq, var: var(id, n), lo, hi, body }
}

/// Returns the statements of a kernel with this body, which each work-item runs.
fn text(body: Block) -> String {
    let buffer = |name: &str, role| Buffer {
        array: MemArray { name: name.into(), scalar: F32, len: 1 << 20, ahead: 0, pieces: 0 },
        role,
    };
    let (lo, hi) = (Index::from(0), Index::from(1000));
    let spread = Stmt::Loop { kind: LoopKind::Glb(0), var: var(0, 1000), lo, hi, body };
    let kernel = Kernel { global: [1000, 1, 1], ..kernel(vec![spread]) };
    let program = Program {
        buffers: vec![
            buffer("x", BufferRole::Input("x".into(), 0)),
            buffer("q0", BufferRole::Output(0)),
        ],
        scalars: vec![],
        kernels: vec![kernel],
        control: vec![Control::Launch(0)],
        contract: false,
        relaxed: false,
        halves: false,
        ahead: false,
    };
    let source = print(&program).source;
    source.split_once("{\n").expect("a kernel").1.to_owned()
}

#[test]
fn quotients_leave_loops() {
    let inner = copy(&at(2), &at(0).div(7).times(9).add(&at(2)));
    let nest = text(vec![repeat(1, 100, vec![repeat(2, 100, vec![inner])])]);
    // The name is declared before both loops, and differs from the names of buffers.
    let expected = "    const int i0 = get_global_id(0);
    const int q0_ = i0 / 7;
    for (int i1 = 0; i1 < 100; ++i1) {
        for (int i2 = 0; i2 < 100; ++i2) {
            q0[i2] = x[i2 + 9 * q0_];
        }
    }
}
";
    assert_eq!(nest, expected);
    // A quotient is declared after the variables that it depends on.
    let inner = copy(&at(2), &at(1).div(7).times(9).add(&at(2)));
    let nest = text(vec![repeat(1, 100, vec![repeat(2, 100, vec![inner])])]);
    assert!(nest.contains("        const int q0_ = i1 / 7;\n        for (int i2"), "{nest}");
}

#[test]
fn what_is_wanted_once_has_no_name() {
    let (q, r) = at(0).div_mod(7);
    let once = text(vec![copy(&at(0), &q)]);
    assert!(once.contains("q0[i0] = x[i0 / 7];"), "{once}");
    let twice = text(vec![copy(&r, &q), copy(&at(0), &q)]);
    assert!(twice.contains("const int q0_ = i0 / 7;\n    q0[i0 % 7] = x[q0_];"), "{twice}");
    // A name is not known outside its block.
    let guard = Guard::less(&at(0), &Index::from(500));
    let both = || vec![copy(&q, &q)];
    let branches = text(vec![Stmt::If(guard, both(), both())]);
    assert!(
        branches.contains("        const int q0_ = i0 / 7;\n        q0[q0_] = x[q0_];"),
        "{branches}"
    );
    assert!(
        branches.contains("        const int q1 = i0 / 7;\n        q0[q1] = x[q1];"),
        "{branches}"
    );
}

#[test]
fn short_loops_are_unrolled() {
    let simple = |n| repeat(1, n, vec![copy(&at(1), &at(1))]);
    assert!(text(vec![simple(16)]).contains("    #pragma unroll\n    for (int i1"));
    assert!(!text(vec![simple(17)]).contains("unroll"));
    assert!(!text(vec![simple(1)]).contains("unroll"));
    let nest = text(vec![repeat(2, 4, vec![simple(4)])]);
    assert!(
        nest.contains("    for (int i2 = 0; i2 < 4; ++i2) {\n        #pragma unroll\n"),
        "{nest}"
    );
    assert_eq!(nest.matches("unroll").count(), 1);
}
