//! The command line.

use patsat::diag::{Code, Exit, on_own_stack};
use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

/// Terms and kernels are trees of small nodes, made and dropped on all cores: the system's allocator takes a quarter of the time.
#[global_allocator]
static ALLOCATOR: OrExit = OrExit;

/// An allocator that ends the process with a diagnostic when memory runs out. Without it, Rust aborts.
struct OrExit;

/// Ends the process if an allocation of `bytes` bytes failed.
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        // Nothing here allocates, and handlers at exit do not run: they could allocate.
        let help =
            "choose smaller sizes, or allow more memory (`ulimit -v`, the container's limits)";
        drop(writeln!(
            std::io::stderr(),
            "error[{}]: memory ran out: {bytes} bytes cannot be allocated\n = help: {help}",
            Code::NoMemory
        ));
        // SAFETY: it returns nothing and reads nothing.
        unsafe { libc::_exit(Exit::Limitation as i32) }
    }
    memory
}

// SAFETY: every call goes to jemalloc as it is.
unsafe impl GlobalAlloc for OrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(unsafe { Jemalloc.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        given(unsafe { Jemalloc.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { Jemalloc.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        given(unsafe { Jemalloc.realloc(memory, layout, bytes) }, bytes)
    }
}

/// Runs the command on a stack that is large enough for all that recurses over programs and terms.
fn main() -> ExitCode {
    on_own_stack(patsat::cli::main).unwrap_or_else(|_| patsat::cli::main())
}
