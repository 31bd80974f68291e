//! Emits kernels with host programs in C and in Rust that do not depend on patsat. The programs generate their
//! inputs, run the host plan with OpenCL, and compare the result with the interpreter's result for the same inputs.
//!
//! Returns texts and writes nothing. `host.c` and `host.rs.in` contain the programs except for their tables.
//! [`numbers`] is emitted unchanged, so that patsat and the emitted programs generate inputs with the same code.

mod c;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "bits are cut and read as other types on purpose"
)]
pub mod numbers;
mod readme;
mod rust;
#[cfg(test)]
mod tests;

pub use readme::{About, MARK};

use super::host::Slot;
use super::plan::{Arg, HostPlan, Role};
use crate::diag::{Code, Diagnostic};
use crate::lang::types::ScalarType;
use numbers::{Recipe, Type};

/// The place of the tables in a host program.
const TABLES: &str = "//@tables\n";

/// Number of runs that host programs time; they report the median.
const RUNS: usize = 11;

/// Everything that is to be emitted.
pub struct Emission<'a> {
    /// Name of the entry.
    pub name: &'a str,
    /// The kernels and how to run them.
    pub plan: &'a HostPlan,
    /// Every input that the kernels read.
    pub inputs: Vec<Input>,
    /// The expected result: for each component, the elements that are checked.
    pub expected: Vec<Vec<Expected>>,
    /// What a reader should know about the kernels.
    pub about: About,
}

/// An input array, or a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The parameter and component.
    pub slot: Slot,
    /// Type of the elements.
    pub ty: ScalarType,
    /// Number of elements.
    pub length: usize,
    /// Where the elements come from.
    pub origin: Origin,
}

/// Where the elements of an array come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Generated, with this seed.
    Made(Recipe, u64),
    /// Read from a file with these bytes.
    Stored(Vec<u8>),
}

/// An expected element of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Its position, row-major.
    pub index: usize,
    /// The bits of a double, or of an integer extended to 64 bits.
    pub bits: u64,
    /// Largest permitted error of a float.
    pub slack: f64,
}

/// A file of an emitted directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The file's name.
    pub name: String,
    /// The file's contents.
    pub contents: Vec<u8>,
}

/// Returns the files: a description, kernels, host programs and how to build them, and data. The first file is the
/// description, by which an emitted directory is recognised.
///
/// # Errors
/// [`Code::Internal`] when the plan reads something that is not an input.
pub fn files(e: &Emission) -> Result<Vec<File>, Diagnostic> {
    let file = |name: &str, contents: String| File {
        name: name.to_owned(),
        contents: contents.into_bytes(),
    };
    let mut out = vec![
        file("README.md", readme::print(e)),
        file("kernels.cl", e.plan.source.clone()),
        file("host.c", include_str!("host.c").replace(TABLES, &c::tables(e)?)),
        file("Makefile", c::MAKEFILE.to_owned()),
        file("host.rs", include_str!("host.rs.in").replace(TABLES, &rust::tables(e)?)),
        file("numbers.rs", include_str!("numbers.rs").to_owned()),
        file("Cargo.toml", rust::MANIFEST.to_owned()),
        file(".gitignore", "/host\n/target/\n".to_owned()),
        File { name: "expected.bin".to_owned(), contents: expected(e) },
    ];
    for (k, input) in e.inputs.iter().enumerate() {
        if let Origin::Stored(bytes) = &input.origin {
            out.push(File { name: stored(k), contents: bytes.clone() });
        }
    }
    Ok(out)
}

/// Returns the file name of a stored input.
fn stored(k: usize) -> String {
    format!("input-{k}.bin")
}

fn expected(e: &Emission) -> Vec<u8> {
    let mut out = vec![];
    for component in &e.expected {
        out.extend((component.len() as u64).to_le_bytes());
        for element in component {
            out.extend((element.index as u64).to_le_bytes());
            out.extend(element.bits.to_le_bytes());
            out.extend(element.slack.to_le_bytes());
        }
    }
    out
}

/// Returns the corresponding type of the host programs.
pub fn type_of(ty: ScalarType) -> Type {
    match ty {
        ScalarType::F16 => Type::F16,
        ScalarType::BF16 => Type::BF16,
        ScalarType::F32 => Type::F32,
        ScalarType::F64 => Type::F64,
        ScalarType::I8 => Type::I8,
        ScalarType::I16 => Type::I16,
        ScalarType::I32 => Type::I32,
        ScalarType::I64 => Type::I64,
        ScalarType::U8 => Type::U8,
        ScalarType::U16 => Type::U16,
        ScalarType::U32 => Type::U32,
        ScalarType::U64 => Type::U64,
        ScalarType::Bool => Type::Bool,
    }
}

/// A buffer's role, with the number of its input or output.
enum Numbered {
    Input(usize),
    Temporary,
    Output(usize),
    Faults,
    GoesOn,
    Meeting,
}

impl Emission<'_> {
    fn input(&self, param: &str, component: usize) -> Result<usize, Diagnostic> {
        let is = |i: &Input| i.slot.param == param && i.slot.component == component;
        self.inputs.iter().position(is).ok_or_else(|| {
            let text = format!("the plan reads component {component} of `{param}`, which is none");
            Diagnostic::error(Code::Internal, text)
        })
    }

    fn role(&self, role: &Role) -> Result<Numbered, Diagnostic> {
        Ok(match role {
            Role::Input(param, component) => Numbered::Input(self.input(param, *component)?),
            Role::Temp => Numbered::Temporary,
            Role::Output(k) => Numbered::Output(*k),
            Role::Faults => Numbered::Faults,
            Role::GoesOn => Numbered::GoesOn,
            Role::Meeting => Numbered::Meeting,
        })
    }

    /// Returns the number of the input that a scalar argument passes; `None` for other arguments.
    fn scalar(&self, arg: Arg) -> Result<Option<usize>, Diagnostic> {
        match arg {
            Arg::Buffer(_) | Arg::Counter(_) => Ok(None),
            Arg::Scalar(k) => self.input_of_scalar(k).map(Some),
        }
    }

    /// Returns the number of the input that is the plan's scalar `k`.
    fn input_of_scalar(&self, k: usize) -> Result<usize, Diagnostic> {
        let s = self.plan.scalars.get(k).ok_or_else(|| {
            Diagnostic::error(Code::Internal, format!("the plan has no scalar {k}"))
        })?;
        self.input(&s.param, s.component)
    }
}
