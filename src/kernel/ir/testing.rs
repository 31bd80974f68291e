//! Kernels, registers and indices for tests.

use super::index::{Index, Var};
use super::{Block, ElemTy, Expr, Kernel, Reg};
use crate::lang::types::ScalarType::F32;
use proptest::prelude::*;

pub const FLOAT: ElemTy = ElemTy { scalar: F32, width: 1 };

/// The register `t` of this number, which holds an `f32`.
pub fn reg(id: u32) -> Reg {
    Reg { id, name: format!("t{id}").into(), ty: FLOAT }
}

/// The value of the register.
pub fn get(id: u32) -> Expr {
    Expr::Reg(reg(id))
}

/// A kernel of one work-item without arrays of its own.
pub fn kernel(body: Block) -> Kernel {
    Kernel {
        name: "test".into(),
        global: [1; 3],
        group: [1; 3],
        warp: 0,
        locals: vec![],
        privates: vec![],
        streaming: false,
        side_by_side: 1,
        body,
    }
}

/// A variable with values from 0 to `n - 1`.
pub fn var(id: u32, n: i64) -> Index {
    Index::from(Var { id, name: format!("v{id}").into(), lo: 0, hi: n - 1 })
}

/// Any index of few variables, with quotients, remainders and extremes.
pub fn form() -> impl Strategy<Value = Index> {
    let leaf = prop_oneof![
        (0u32..3).prop_map(|v| var(v, [4, 6, 35][v as usize])),
        (-20i64..20).prop_map(Index::from),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.add(&b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.lesser(&b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.greater(&b)),
            (inner.clone(), -6i64..7).prop_map(|(a, k)| a.times(k)),
            (inner.clone(), 1i64..13).prop_map(|(a, k)| a.div(k)),
            (inner, 1i64..13).prop_map(|(a, k)| a.rem(k)),
        ]
    })
}
