//! Prints the description of an emitted directory.

use super::{Emission, Origin, stored};
use crate::opencl::plan::Role;
use std::fmt::Write as _;

/// The first line of the description, by which `emit` recognises a directory that it may overwrite.
pub const MARK: &str = "<!-- Written by `patsat emit`. -->";

/// What a reader should know about emitted kernels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The file of the program.
    pub file: String,
    /// Values of its sizes, such as `n=16 m=4`.
    pub sizes: String,
    /// The arithmetic changes that were allowed.
    pub float: String,
    /// The device that the kernels were tuned for, and its driver.
    pub device: String,
    /// The time measured on that device, or a note that nothing was measured.
    pub time: String,
    /// The low-level term, over several lines.
    pub term: String,
    /// Values of its tunables, such as `n.t0=128`.
    pub tunables: String,
    /// Version of patsat.
    pub version: String,
}

pub(super) fn print(e: &Emission) -> String {
    let a = &e.about;
    let mut out = format!("{MARK}\n\n# {}\n\n", e.name);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "OpenCL kernels for the entry `{}` of `{}`, with host programs in C and in Rust that run them and check \
         the result.\nMade by patsat {}; nothing here needs it.\n",
        e.name, a.file, a.version
    );
    let sizes = if a.sizes.is_empty() { "none" } else { &a.sizes };
    let tunables = if a.tunables.is_empty() { "none" } else { &a.tunables };
    for (what, text) in [
        ("sizes", sizes),
        ("tunables", tunables),
        ("float", &a.float),
        ("device", &a.device),
        ("time", &a.time),
    ] {
        let _ = writeln!(out, "- {what}: {text}");
    }
    let _ = writeln!(out, "\nThe term that the kernels compute:\n\n```\n{}\n```\n", a.term.trim());
    out.push_str(
        "## Files\n\n\
         | file | is |\n|---|---|\n\
         | `kernels.cl` | the kernels, in OpenCL C |\n\
         | `host.c`, `Makefile` | the host program in C |\n\
         | `host.rs`, `numbers.rs`, `Cargo.toml` | the host program in Rust, over the crate `opencl3` |\n\
         | `expected.bin` | what the result must be |\n",
    );
    for (k, input) in e.inputs.iter().enumerate() {
        if let Origin::Stored(_) = input.origin {
            let (file, name) = (stored(k), &input.slot.param);
            let _ = writeln!(out, "| `{file}` | `{name}`, {} of {} |", input.length, input.ty);
        }
    }
    out.push_str(
        "| `program.pat` | the program |\n\
         | `kernels.plan` | the plan: `patsat emit program.pat --plan kernels.plan -o DIR` makes the same kernels again |\n\n\
         ## Building and running\n\n\
         In this folder, with an OpenCL loader and a device's driver installed (on Debian or Ubuntu `ocl-icd-opencl-dev` \
         and, for the CPU, `pocl-opencl-icd`):\n\n\
         ```\nmake run\ncargo run --release\n```\n\n\
         Both take a device as their argument (`./host '#1'`, `cargo run --release -- nvidia`) or from the variable \
         `DEVICE`: a number,\nor a part of its or its platform's name; else the first is taken. They print a line with \
         `OK` or `MISMATCH` and the median time of\nsome runs by the device's clock. The exit status is 0 when the \
         result is right, 1 when it is wrong, 2 when something else failed.\n\n",
    );
    let stored = e.inputs.iter().any(|i| matches!(i.origin, Origin::Stored(_)));
    out.push_str(match stored {
        true => {
            "Inputs are read from their files, or made up from seeds, the same by both programs"
        }
        false => "Inputs are made up from seeds, the same by both programs",
    });
    let checked: usize = e.expected.iter().map(Vec::len).sum();
    let outputs = e.plan.buffers.iter().filter(|b| matches!(b.role, Role::Output(_)));
    let all: usize = outputs.map(|b| b.len).sum();
    let _ = writeln!(
        out,
        ". `expected.bin` has what patsat's interpreter\ngives for them: {checked} of the {all} elements of the result. \
         For each component of the result it has a count of 8 bytes, and then of each\nelement its position, its value \
         (a double, or an integer of 64 bits) and how far a float may be off (a double), 8 bytes each, \
         little-endian."
    );
    out
}
