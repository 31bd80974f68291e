//! `patsat gen`: writes an array of generated data to a file.

use super::out::{Done, Out};
use super::output::{ForceArg, Output};
use crate::diag::{Code, Diagnostic};
use crate::lang::types::ScalarType;
use crate::session::Sizes;
use crate::session::files::Kind;
use crate::session::generate::{Generator, generate_shaped};
use crate::session::npy::{self, NpyArray};
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat gen`.
#[derive(clap::Args)]
pub struct Args {
    /// The output file, or `-` for the standard output.
    #[arg(value_name = "FILE.npy")]
    file: PathBuf,
    /// The length of each dimension, the slowest first; leave it out for a scalar.
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    shape: Vec<usize>,
    /// The element type, as in programs.
    #[arg(long = "type", default_value = "f32", value_name = "TYPE")]
    ty: String,
    /// The values: `normal`, `uniform`, `uniform:LOW..HIGH`, `whole:LOW..HIGH` (integers), `sorted:LOW..HIGH`,
    /// `neighbours:N` (lists of indices of other elements), `letters:ABC`, `iota`, `shuffle` or `const:V`.
    #[arg(long, default_value = "normal", value_name = "HOW")]
    how: String,
    /// Seed of the data.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    force: ForceArg,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let ty = ScalarType::from_name(&args.ty).ok_or_else(|| {
        let types: Vec<_> = ScalarType::ALL.iter().map(|t| t.name()).collect();
        Diagnostic::error(Code::Usage, format!("`{}` is no element type", args.ty))
            .help(format!("the element types are {}", types.join(", ")))
    })?;
    let output = Output::new(&args.file, Kind::Array, &[], args.force.force, out)?;
    let how: Generator = args.how.parse()?;
    let too_large = || Diagnostic::error(Code::SizeRange, "the array is larger than any memory");
    let len: usize = args
        .shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|n| n.checked_mul(ty.bytes()).is_some_and(|b| isize::try_from(b).is_ok()))
        .ok_or_else(too_large)?;
    crate::session::check_memory(len as u64 * ty.bytes() as u64)?;
    let data = generate_shaped(&how, ty, &args.shape, &Sizes::new(), args.seed, 0)?;
    let array = NpyArray { shape: args.shape.clone(), data };
    output.write(out, |to| npy::write_to(to, &array))?;
    out.event("result", json!({"output": output.name(), "elements": len}))
}
