//! Checks that a program fits this machine and a device: its element types, and the memory for its arrays.

use super::inputs::bytes_of;
use super::program::{Program, Sizes};
use crate::device::DeviceInfo;
use crate::diag::{Code, Diagnostic, Result};
use crate::lang::types::ScalarType;

/// Returns how many bytes this process can still allocate: the machine's available memory, or what a limit on the
/// address space (`ulimit -v`) leaves if that is less. `None` if the system does not report it.
pub(super) fn available() -> Option<u64> {
    let machine = kilobytes("/proc/meminfo", "MemAvailable:")?;
    Some(under_limit().map_or(machine, |limit| limit.min(machine)))
}

/// Returns the rest of the process's address space under its limit; `None` without a limit.
fn under_limit() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let limit = limits.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    // The soft limit. "unlimited" does not parse.
    let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kilobytes("/proc/self/status", "VmSize:")?))
}

/// Returns the value of a line `name 123 kB` of a file, in bytes.
fn kilobytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024))
}

/// Checks that arrays of `bytes` bytes fit in this machine's memory three times.
pub(super) fn check(bytes: u64, what: &str) -> Result<()> {
    let Some(room) = available() else { return Ok(()) };
    // Inputs exist three times: as given, for the interpreter, and on their way to the device.
    if bytes.saturating_mul(3) <= room {
        return Ok(());
    }
    let text = format!("{what} take {bytes} bytes, and three copies are needed");
    Err(Diagnostic::error(Code::SizeRange, text)
        .note(format!("{room} bytes of memory are left"))
        .help("choose smaller sizes")
        .into())
}

/// Checks that a device offers a program's element types.
fn check_types(program: &Program, device: &DeviceInfo) -> Result<()> {
    let ty = ScalarType::F64;
    if let Some(span) = program.entry.mentions(ty).filter(|_| !device.fp64) {
        let text = format!("{} does not support `{ty}`", device.label());
        return Err(Diagnostic::error(Code::DeviceType, text)
            .at(&program.source, span, format!("`{ty}` is used here"))
            .note("its driver does not offer the OpenCL extension cl_khr_fp64")
            .help("use `f32`, or choose another device: `patsat devices` lists them")
            .help("`patsat eval` runs the program in the interpreter")
            .into());
    }
    Ok(())
}

/// Checks that a device offers a program's element types, and that its inputs and result fit on it.
pub(super) fn check_device(program: &Program, sizes: &Sizes, device: &DeviceInfo) -> Result<()> {
    check_types(program, device)?;
    let mut total = 0u64;
    let entry = &program.entry;
    let params = entry.params.iter().map(|p| (p.name.as_str(), (&p.ty, p.span)));
    for (name, ty) in params.chain([("the result", (&entry.body.ty, entry.span))]) {
        let bytes = bytes_of(program, ty, sizes)?.unwrap_or(u64::MAX);
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
