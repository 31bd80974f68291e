//! Converts the driver's error numbers to diagnostics.

use crate::diag::{Code, Diagnostic};
use opencl3::error_codes::ClError;

/// Explains a driver's error during `doing` to the user.
#[expect(clippy::needless_pass_by_value, reason = "the error is of no further use")]
pub(super) fn driver(e: ClError, doing: &str) -> Diagnostic {
    let (code, what) = match e.0 {
        // Memory object allocation, resources, host memory, buffer size.
        -4 | -5 | -6 | -61 => {
            (Code::DeviceMemory, "the device's memory or resources do not suffice for")
        }
        // Work dimension, work-group size, work-item size, global size, size restriction.
        -53 | -54 | -55 | -63 | -72 => {
            (Code::KernelLimit, "the device does not offer the sizes of")
        }
        // Build and compile failures.
        -11 | -15 | -17 => (Code::BuildFailed, "the driver did not finish"),
        _ => (Code::Driver, "the driver failed at"),
    };
    Diagnostic::error(code, format!("{what} {doing}: {e} ({})", e.0))
}
