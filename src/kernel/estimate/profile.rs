//! Static features of programs, the input of the cost model.

use super::count::kernel;
use super::features::{KernelProfile, real};
use super::parts::touched;
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
    /// Bytes of inputs and results that are touched, each counted once.
    pub bytes: f64,
}

/// Computes the features of a program.
pub fn profile(program: &Program) -> Profile {
    let kernels: Vec<KernelProfile> = program.kernels.iter().map(|k| kernel(program, k)).collect();
    let launches = program.launches(UNKNOWN);
    let touched = touched(kernels.iter().zip(launches.iter().copied()));
    // The host alone copies what no kernel touches.
    let whole = |b: &Buffer| real(b.array.len) * real(b.array.scalar.bytes());
    let of = |(k, b)| touched.get(&Mem::Global(k)).copied().unwrap_or_else(|| whole(b));
    let inputs_and_results =
        program.buffers.iter().enumerate().filter(|(_, b)| b.role != BufferRole::Temp);
    let bytes = inputs_and_results.map(of).sum();
    Profile { kernels, launches, units: units(program), bytes }
}

/// Returns what each launch of a program runs.
pub fn units(program: &Program) -> Vec<Unit> {
    let unit = |launched| match launched {
        Launched::Kernel(k) => Unit::Kernel(k),
        Launched::Loop(team, steps) => Unit::Loop(team, program.phases(steps).collect()),
    };
    program.launched().into_iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::profile;
    use crate::calculus::size::SizeEnv;
    use crate::kernel::lower;
    use crate::kernel::lower::testing::{options, term};

    #[test]
    fn few_places_of_a_table_are_not_the_table() {
        let bytes = |text: &str| {
            let term = term(text, &[("table", "[100000]f32"), ("is", "[1000]i32")]);
            profile(&lower(&term, &SizeEnv::default(), &options()).expect("lowers")).bytes
        };
        // The indices, the elements and the results, of 4 bytes each.
        assert_eq!(bytes("mapGlb 0 (index . fork (table . bang) id) . is"), 12e3);
        assert_eq!(bytes("mapGlb 0 abs . table"), 8e5);
    }
}
