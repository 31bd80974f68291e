//! Copies from global to local memory that go on beside other instructions, in NVIDIA's inline PTX.

use crate::kernel::ir::copies::Copied;
use crate::kernel::ir::{Expr, Mem};

/// Waits for all copies of the work-item.
pub const ARRIVE: &str = "copies_arrive();";

/// The functions of [`call`] and [`ARRIVE`]. A copy of no bytes stores zeros. Those of 16 bytes leave out the nearest cache: the
/// others have no such form.
pub const DEFINITIONS: &str = concat!(
    "\n#define COPY_AHEAD(bytes, how) void copy_ahead_##bytes(local void *to, global const void *from, int some) {\\\n",
    "    asm volatile(\"cp.async.\" how \".shared.global [%0], [%1], \" #bytes \", %2;\"\\\n",
    "        :: \"r\"((uint)(size_t)to), \"l\"((ulong)from), \"r\"(some) : \"memory\");\\\n}\n",
    "COPY_AHEAD(4, \"ca\")\nCOPY_AHEAD(8, \"ca\")\nCOPY_AHEAD(16, \"cg\")\n",
    "\nvoid copies_arrive(void) {\n    asm volatile(\"cp.async.wait_all;\" ::: \"memory\");\n}\n",
);

/// The statement that copies so many bytes from a place to another, or zeros if a condition does not hold.
pub fn call(bytes: usize, to: &str, from: &str, condition: Option<&str>) -> String {
    let some = condition.map_or(bytes.to_string(), |c| format!("{c} ? {bytes} : 0"));
    format!("copy_ahead_{bytes}(&{to}, &{from}, {some});")
}

impl super::Printer<'_> {
    /// Returns the statement that stores a value by a copy, if it may arrive late.
    pub(super) fn copy_ahead(&self, m: Mem, to: &str, e: &Expr) -> Option<String> {
        let Mem::Local(a) = m else { return None };
        if !self.kernel.locals.get(a).is_some_and(|a| a.ahead) || self.stores_if.is_some() {
            return None;
        }
        let Copied { from: Mem::Global(b), t, at, guard } = Copied::of(e)? else { return None };
        if self.written.contains(&b) || at.has_data() {
            return None;
        }
        let from = self.place(Mem::Global(b), t, at, true)?;
        let condition = guard.map(|g| self.guard(g).0);
        self.needed.copies.set(true);
        Some(call(t.bytes(), to, &from, condition.as_deref()))
    }
}
