//! The reference interpreter.

pub(super) mod build;
pub(super) mod code;
pub(super) mod machine;
