//! Static features of programs, the input of the cost model.

use super::count::kernel;
use super::features::{KernelProfile, real};
use super::trip_count::UNKNOWN;
use crate::kernel::ir::{Buffer, BufferRole, Launched, Mem, Program, Team};

/// What one launch runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Unit {
    /// A kernel.
    Kernel(usize),
    /// A loop that a team runs, with its kernels.
    Loop(Team, Vec<usize>),
}

impl Unit {
    /// Its kernels.
    pub fn kernels(&self) -> &[usize] {
        match self {
            Unit::Kernel(k) => std::slice::from_ref(k),
            Unit::Loop(_, kernels) => kernels,
        }
    }
}

/// Features of a whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The kernels in order.
    pub kernels: Vec<KernelProfile>,
    /// Number of launches of each kernel.
    pub launches: Vec<f64>,
    /// What one launch runs, in order.
    pub units: Vec<Unit>,
    /// Bytes of inputs and results, each counted once. Of an array that kernels access in fewer places than it has, those places.
    pub bytes: f64,
}

/// Computes the features of a program.
pub fn profile(program: &Program) -> Profile {
    let kernels: Vec<KernelProfile> = program.kernels.iter().map(|k| kernel(program, k)).collect();
    let launches = program.launches(UNKNOWN);
    let accessed = accessed(program, &kernels, &launches);
    let whole = |b: &Buffer| real(b.array.len) * real(b.array.scalar.bytes());
    let bytes = program
        .buffers
        .iter()
        .zip(accessed)
        .filter(|(b, _)| b.role != BufferRole::Temp)
        .map(|(b, most)| if most > 0.0 { whole(b).min(most) } else { whole(b) })
        .sum();
    Profile { kernels, launches, units: units(program), bytes }
}

/// Returns the bytes of each buffer that kernels access, counted as often as they do. Buffers that the host alone copies have none.
fn accessed(program: &Program, kernels: &[KernelProfile], launches: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; program.buffers.len()];
    for (kernel, times) in kernels.iter().zip(launches) {
        for a in &kernel.accesses {
            if let Mem::Global(buffer) = a.mem {
                out[buffer] += times * a.count * real(a.elem_bytes * a.width);
            }
        }
    }
    out
}

/// Returns what each launch of a program runs.
pub fn units(program: &Program) -> Vec<Unit> {
    let unit = |launched| match launched {
        Launched::Kernel(k) => Unit::Kernel(k),
        Launched::Loop(team, steps) => Unit::Loop(team, program.phases(steps).collect()),
    };
    program.launched().into_iter().map(unit).collect()
}
