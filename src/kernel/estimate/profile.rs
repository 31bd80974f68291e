//! Static features of programs, the input of the cost model.

use super::count::kernel;
use super::features::{KernelProfile, real};
use super::trip_count::UNKNOWN;
use crate::kernel::ir::{BufferRole, Launched, Program, Team};

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
    /// Bytes of inputs and results, each counted once.
    pub bytes: f64,
}

/// Computes the features of a program.
pub fn profile(program: &Program) -> Profile {
    let bytes = program
        .buffers
        .iter()
        .filter(|b| b.role != BufferRole::Temp)
        .map(|b| real(b.array.len) * real(b.array.scalar.bytes()))
        .sum();
    Profile {
        kernels: program.kernels.iter().map(|k| kernel(program, k)).collect(),
        launches: program.launches(UNKNOWN),
        units: units(program),
        bytes,
    }
}

/// Returns what each launch of a program runs.
pub fn units(program: &Program) -> Vec<Unit> {
    let unit = |launched| match launched {
        Launched::Kernel(k) => Unit::Kernel(k),
        Launched::Loop(team, steps) => Unit::Loop(team, program.phases(steps).collect()),
    };
    program.launched().into_iter().map(unit).collect()
}
