//! Whether arrays fit, asked before they are allocated.

use super::inputs::bytes_of;
use super::program::{Program, Sizes};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};

/// Bytes of memory this machine can still give; `None` where the system does not say.
pub(super) fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024))
}

/// Checks that arrays of so many bytes fit in this machine's memory, with room to work on them.
pub(super) fn check(bytes: u64, what: &str) -> Result<()> {
    let Some(room) = available() else { return Ok(()) };
    // Inputs are held as given, for the interpreter, and on their way to the device.
    if bytes.saturating_mul(3) <= room {
        return Ok(());
    }
    let text = format!("{what} take {bytes} bytes, and are needed three times");
    Err(Diagnostic::error(Code::SizeRange, text)
        .note(format!("this machine has {room} bytes of memory left"))
        .help("choose smaller sizes")
        .into())
}

/// Checks that a program's inputs and result fit on a device.
pub(super) fn check_device(program: &Program, sizes: &Sizes, device: &DeviceInfo) -> Result<()> {
    let mut total = 0u64;
    let params = program.entry.params.iter().map(|p| (p.name.as_str(), &p.ty));
    for (name, ty) in params.chain([("the result", &program.entry.body.ty)]) {
        let bytes = bytes_of(ty, sizes)?.unwrap_or(u64::MAX);
        if bytes > device.max_alloc_bytes {
            let text = format!("`{name}` takes {bytes} bytes, more than one buffer may have");
            return Err(Diagnostic::error(Code::DeviceMemory, text)
                .note(format!(
                    "{} allows {} bytes for one buffer",
                    device.label(),
                    device.max_alloc_bytes
                ))
                .into());
        }
        total = total.saturating_add(bytes);
    }
    if total > device.global_mem_bytes {
        let text = format!("the program's arrays take {total} bytes, more than the device has");
        return Err(Diagnostic::error(Code::DeviceMemory, text)
            .note(format!("{} has {} bytes", device.label(), device.global_mem_bytes))
            .into());
    }
    Ok(())
}
