//! The closed, point-free calculus: sizes, types, scalar leaves, terms. Knows nothing of egg.

pub mod eval;
pub mod interp;
pub mod scalar;
pub mod size;
pub mod term;
pub mod ty;
pub mod value;
