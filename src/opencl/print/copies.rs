//! Copies from global to local memory that go on beside other instructions, in NVIDIA's inline PTX.

use crate::kernel::ir::copies::Copied;
use crate::kernel::ir::{Expr, Mem};

/// Waits at a barrier for copies of the work-item: for those before as many barriers, this one included, as may pass.
pub fn arrive(barriers: usize) -> String {
    format!("copies_arrive({});", barriers - 1)
}

/// The functions of [`call`] and [`arrive`]. A copy of no bytes stores zeros. Those of 16 bytes leave out the nearest cache: the
/// others have no such form.
pub const DEFINITIONS: &str = concat!(
    "\n#define COPY_AHEAD(bytes, how) void copy_ahead_##bytes(local void *to, global const void *from, int some) {\\\n",
    "    asm volatile(\"cp.async.\" how \".shared.global [%0], [%1], \" #bytes \", %2;\"\\\n",
    "        :: \"r\"((uint)(size_t)to), \"l\"((ulong)from), \"r\"(some) : \"memory\");\\\n}\n",
    "COPY_AHEAD(4, \"ca\")\nCOPY_AHEAD(8, \"ca\")\nCOPY_AHEAD(16, \"cg\")\n",
    "\n#define copies_arrive(later) \\\n    asm volatile(\"cp.async.commit_group; cp.async.wait_group \" #later \";\" ::: \"memory\")\n",
);

/// The statement that copies so many bytes from a place to another, or zeros if a condition does not hold.
pub fn call(bytes: usize, to: &str, from: &str, condition: Option<&str>) -> String {
    let some = condition.map_or(bytes.to_string(), |c| format!("{c} ? {bytes} : 0"));
    format!("copy_ahead_{bytes}(&{to}, &{from}, {some});")
}

impl super::Printer<'_> {
    /// Returns the statement that stores a value by a copy, if it may arrive late.
    pub(super) fn copy_ahead(&self, m: Mem, to: &str, e: &Expr) -> Option<String> {
        let Copied { from, t, at, guard } = Copied::late(&self.kernel.locals, m, e)?;
        let changes = matches!(from, Mem::Global(b) if self.written.contains(&b));
        if changes || at.has_data() || self.stores_if.is_some() {
            return None;
        }
        let from = self.place(from, t, at, true)?;
        let condition = guard.map(|g| self.guard(g).0);
        self.needed.copies.set(true);
        Some(call(t.bytes(), to, &from, condition.as_deref()))
    }
}
