//! The closed, point-free calculus: sizes, types, scalar leaves, terms, and their meaning. Independent of
//! egg.

#[doc(hidden)]
pub mod arbitrary;
pub mod elaborate;
pub mod eval;
pub mod flow;
mod hashed;
pub mod interp;
mod lanes;
pub mod laws;
pub mod nesting;
pub mod op;
mod order;
pub mod position;
pub mod sample;
pub mod scalar;
pub mod size;
pub mod term;
pub mod text;
mod tiling;
pub mod ty;
pub mod value;
