//! Passes over lowered kernels.
//!
//! Takes the program that lowering gives: its kernels have no barriers, and guards wherever an
//! index may be out of range. The first passes make it complete: they resolve guards, merge memory,
//! and insert barriers. The others make it faster. They do not change what a kernel computes,
//! except for the order of sums if `relaxed` allows it.

mod array_copies;
mod barrier;
mod copy_propagation;
mod counted;
mod cse;
mod dead_stores;
mod first_steps;
mod fma;
mod forward_copies;
mod guards;
mod hoist_gathers;
mod in_place;
mod kept_steps;
mod last_states;
mod layout;
mod licm;
mod lifetimes;
mod load_reuse;
mod masked;
mod memory_reuse;
mod neutral_steps;
mod overlap;
mod own_rows;
mod passed_on;
mod proved_checks;
mod roots;
mod rounds_ahead;
mod row_blocks;
mod shortened;
mod side_by_side;
mod sides;
mod spills;
mod state_copies;
mod stored_twice;
pub mod together;
mod unread;
mod wide_accesses;

pub use lifetimes::touched;
pub use memory_reuse::block as with_memories;
pub use row_blocks::stage as with_row_blocks;

use crate::kernel::ir::walk::Fresh;
use crate::kernel::ir::{Kernel, Program};
use crate::kernel::options::DeviceLimits;

/// Resolves the guards of a kernel, removes checks that cannot fail, and computes what one side of a choice needs on that side.
pub fn resolve(k: &mut Kernel) {
    proved_checks::remove(k);
    guards::resolve(k);
    sides::loops(k);
}

/// Runs the passes that take what kernels share into account, before each kernel is completed. `host` gives names for what
/// belongs to the host. The guards are resolved.
pub fn begin(program: &mut Program, device: &DeviceLimits, host: &mut Fresh) {
    counted::loops(program, host);
    if program.relaxed {
        neutral_steps::leave_out(program);
    }
    sides::loads(program);
    unread::leave_out(program);
    passed_on::states(program);
    state_copies::states(program);
    forward_copies::to_checks(program);
    forward_copies::to_results(program);
    stored_twice::by_makers(program, &host.reserved);
    dead_stores::remove(program);
    // Work-items of a CPU have caches of their own, in which a row stays.
    if device.access_bytes > 0 {
        layout::of_temporaries(program);
    }
    last_states::to_results(program, host);
    spills::to_buffers(program, device, host);
}

/// Completes and improves one kernel. `relaxed` says that floating-point operations may be reassociated.
pub fn complete(k: &mut Kernel, device: &DeviceLimits, relaxed: bool, fresh: &mut Fresh) {
    // The assignment of work-items to sub-groups is known only for one-dimensional work-groups
    // that consist of whole sub-groups.
    let size = device.sub_group;
    let whole = size > 0 && k.group[0].is_multiple_of(size) && k.group[1..] == [1, 1];
    let sub_groups = whole && k.warp > 0 && size.is_multiple_of(k.warp);
    array_copies::share(k);
    first_steps::before_loops(k);
    if lifetimes::missing_bytes(k, device.local_mem_bytes) > 0 {
        // The verifier rejects it.
        return;
    }
    memory_reuse::locals(k, sub_groups);
    barrier::insert(k, sub_groups);
    copy_propagation::registers(k);
    improve(k, device, relaxed, fresh);
    side_by_side::place(k, device);
}

/// Runs the passes that take what kernels share into account, after each kernel is complete.
pub fn end(program: &mut Program) {
    memory_reuse::temporaries(program);
}

/// Improves a complete kernel. `relaxed` says that floating-point operations may be reassociated.
fn improve(k: &mut Kernel, device: &DeviceLimits, relaxed: bool, fresh: &mut Fresh) {
    if relaxed {
        fma::sums(k);
        roots::reciprocal(k);
    }
    licm::invariants(k, fresh);
    overlap::unroll(k, fresh);
    let rounds = own_rows::unroll(k, device, fresh);
    kept_steps::write_out(k, fresh);
    wide_accesses::widen(k, device.access_bytes, fresh);
    load_reuse::across_stages(k, fresh);
    cse::share(k, fresh);
    hoist_gathers::once(k, fresh);
    copy_propagation::copies_of_registers(k);
    masked::reductions(k, relaxed);
    rounds_ahead::load(k, &rounds, fresh);
}

#[cfg(test)]
mod tests;
