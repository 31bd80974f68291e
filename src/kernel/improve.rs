//! Passes over a finished kernel, after its barriers are inserted. They do not change what the
//! kernel computes, except for the order of sums if `relaxed` allows it.

use super::ir::Kernel;
use super::walk::Fresh;
use super::{common, contract, gather, hoist, kept, tidy, widen};

/// Improves a kernel. Accesses become at most `bytes` wide. `relaxed` says that floating-point
/// operations may be reassociated.
pub fn kernel(k: &mut Kernel, bytes: usize, relaxed: bool, fresh: &mut Fresh) {
    if relaxed {
        contract::sums(k);
    }
    hoist::invariants(k, fresh);
    widen::accesses(k, bytes, fresh);
    kept::across_stages(k, fresh);
    common::share(k, fresh);
    gather::once(k, fresh);
    tidy::copies_of_registers(k);
}

#[cfg(test)]
mod tests;
