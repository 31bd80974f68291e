//! Registers for tests of passes and analyses.

use super::{ElemTy, Expr, Reg};
use crate::lang::types::ScalarType::F32;

pub const FLOAT: ElemTy = ElemTy { scalar: F32, width: 1 };

/// The register `t` of this number, which holds an `f32`.
pub fn reg(id: u32) -> Reg {
    Reg { id, name: format!("t{id}").into(), ty: FLOAT }
}

/// The value of the register.
pub fn get(id: u32) -> Expr {
    Expr::Reg(reg(id))
}
