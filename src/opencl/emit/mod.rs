//! Kernels with host programs in C and in Rust that need nothing of patsat: they make up their inputs, run the
//! host plan by OpenCL, and compare the result with what the interpreter gave for the same inputs.
//!
//! Gives texts, writes nothing. `host.c` and `host.rs.in` are the programs but for their tables; [`numbers`] is
//! emitted as it stands, so that inputs are made by the same code here and there.

mod c;
pub mod numbers;
mod readme;
mod rust;
#[cfg(test)]
mod tests;

pub use readme::{About, MARK};

use super::host::Slot;
use super::plan::{Arg, Buffer, HostPlan, Role};
use crate::diag::{Code, Diagnostic};
use crate::lang::types::ScalarType;
use numbers::{Recipe, Type};

/// Where the tables go in a host program.
const TABLES: &str = "//@tables\n";

/// Runs that host programs time; they give the median.
const RUNS: usize = 11;

/// What is to be emitted.
pub struct Emission<'a> {
    /// The entry.
    pub name: &'a str,
    /// Its kernels.
    pub plan: &'a HostPlan,
    /// Every input that the kernels read.
    pub inputs: Vec<Input>,
    /// What the result must be: of each component the elements that are checked.
    pub expected: Vec<Vec<Expected>>,
    /// What a reader should know of them.
    pub about: About,
}

/// One input array, or a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Which.
    pub slot: Slot,
    /// Of its elements.
    pub ty: ScalarType,
    /// Number of elements.
    pub length: usize,
    /// Where they come from.
    pub origin: Origin,
}

/// Where the elements of an array come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// Made, with this seed.
    Made(Recipe, u64),
    /// A file with these bytes.
    Stored(Vec<u8>),
}

/// An element of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Its position, row-major.
    pub index: usize,
    /// The bits of a double, or of an integer extended to 64 bits.
    pub bits: u64,
    /// How far a float may be off.
    pub slack: f64,
}

/// A file of an emitted directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub contents: Vec<u8>,
}

/// The files: kernels, host programs and how to build them, data, and a description. The first is the
/// description, by which a directory is known for an emitted one.
///
/// # Errors
/// [`Code::Internal`] when the plan reads what is no input.
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

/// The name of a stored input's file.
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

/// As the host programs name types.
pub fn type_of(ty: ScalarType) -> Type {
    match ty {
        ScalarType::F16 => Type::F16,
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

/// A role with the number of its input or output.
enum Numbered {
    Input(usize),
    Temporary,
    Output(usize),
    Faults,
}

impl Emission<'_> {
    fn input(&self, param: &str, component: usize) -> Result<usize, Diagnostic> {
        let is = |i: &Input| i.slot.param == param && i.slot.component == component;
        self.inputs.iter().position(is).ok_or_else(|| {
            let text = format!("the plan reads component {component} of `{param}`, which is none");
            Diagnostic::error(Code::Internal, text)
        })
    }

    fn is_output(&self, buffer: &Buffer) -> bool {
        matches!(buffer.role, Role::Output(_))
    }

    fn role(&self, role: &Role) -> Result<Numbered, Diagnostic> {
        Ok(match role {
            Role::Input(param, component) => Numbered::Input(self.input(param, *component)?),
            Role::Temp => Numbered::Temporary,
            Role::Output(k) => Numbered::Output(*k),
            Role::Faults => Numbered::Faults,
        })
    }

    /// The number of the input that a scalar argument passes; `None` for buffers.
    fn scalar(&self, arg: Arg) -> Result<Option<usize>, Diagnostic> {
        match arg {
            Arg::Buffer(_) | Arg::Counter(_) => Ok(None),
            Arg::Scalar(k) => {
                let s = self.plan.scalars.get(k).ok_or_else(|| {
                    Diagnostic::error(Code::Internal, format!("the plan has no scalar {k}"))
                })?;
                self.input(&s.param, s.component).map(Some)
            }
        }
    }
}
