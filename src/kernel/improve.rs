//! Passes over a finished kernel, after its barriers: nothing here changes what it computes.

use super::ir::Kernel;
use super::walk::Fresh;
use super::{common, hoist, tidy, widen};

/// Improves a kernel; accesses become at most `bytes` wide.
pub fn kernel(k: &mut Kernel, bytes: usize, fresh: &mut Fresh) {
    hoist::invariants(k, fresh);
    widen::accesses(k, bytes, fresh);
    common::share(k, fresh);
    tidy::copies_of_registers(k);
}

#[cfg(test)]
mod tests;
