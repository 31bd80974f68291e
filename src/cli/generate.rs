//! `patsat gen`

use super::out::{Done, Out};
use crate::diag::{Code, Diagnostic};
use crate::lang::types::ScalarType;
use crate::session::Sizes;
use crate::session::generate::{Generator, generate_shaped};
use crate::session::npy::{self, NpyArray};
use serde_json::json;
use std::path::PathBuf;

/// What to make.
#[derive(clap::Args)]
pub struct Args {
    /// The array's file.
    #[arg(value_name = "FILE.npy")]
    file: PathBuf,
    /// Length of each dimension, the slowest first; none for a scalar.
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    shape: Vec<usize>,
    /// Element type, as in programs.
    #[arg(long = "type", default_value = "f32", value_name = "TYPE")]
    ty: String,
    /// `normal`, `uniform`, `uniform:LOW..HIGH`, `neighbours:N` (lists of other elements' numbers), `iota`
    /// or `const:V`.
    #[arg(long, default_value = "normal", value_name = "HOW")]
    how: String,
    /// Seed.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let ty = ScalarType::from_name(&args.ty).ok_or_else(|| {
        let types: Vec<_> = ScalarType::ALL.iter().map(|t| t.name()).collect();
        Diagnostic::error(Code::Usage, format!("`{}` is no element type", args.ty))
            .help(format!("the element types are {}", types.join(", ")))
    })?;
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
    npy::write(&args.file, &NpyArray { shape: args.shape.clone(), data })?;
    out.event("result", json!({"output": args.file.display().to_string(), "elements": len}))
}
