//! Passes over lowered kernels.
//!
//! Takes the program that lowering gives: its kernels have no barriers, and guards wherever an
//! index may be out of range. The first passes make it complete: they resolve guards, merge memory,
//! and insert barriers. The others make it faster. They do not change what a kernel computes,
//! except for the order of sums if `relaxed` allows it.

use super::ir::{Kernel, Program};
use super::options::DeviceLimits;
use super::walk::Fresh;
use super::{barrier, common, contract, gather, hoist, kept, reuse, split, tidy, widen};

/// Runs all passes on a program.
pub fn run(program: &mut Program, device: &DeviceLimits, fresh: &mut Fresh) {
    for k in &mut program.kernels {
        split::resolve(k);
        // The assignment of work-items to sub-groups is known only for one-dimensional work-groups
        // that consist of whole sub-groups.
        let size = device.sub_group;
        let whole = size > 0 && k.group[0].is_multiple_of(size) && k.group[1..] == [1, 1];
        let sub_groups = whole && k.warp > 0 && size.is_multiple_of(k.warp);
        reuse::locals(k, sub_groups);
        barrier::insert(k, sub_groups);
        tidy::registers(k);
        improve(k, device.access_bytes, program.relaxed, fresh);
    }
    reuse::temporaries(program);
}

/// Improves a complete kernel. Accesses become at most `bytes` wide. `relaxed` says that floating-point
/// operations may be reassociated.
fn improve(k: &mut Kernel, bytes: usize, relaxed: bool, fresh: &mut Fresh) {
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
