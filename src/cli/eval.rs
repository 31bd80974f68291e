//! `patsat eval`: runs a program in the interpreter.

use super::args::{DataArgs, program};
use super::out::{Done, Out};
use super::output::ForceArg;
use super::value::{self, Outputs};
use crate::rules::RuleSet;
use crate::session;
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat eval`.
#[derive(clap::Args)]
pub struct Args {
    /// The program; `-` is the standard input.
    #[arg(value_name = "FILE[:ENTRY]")]
    program: String,
    #[command(flatten)]
    data: DataArgs,
    /// The output file for the result, or `-` for the standard output. The components of a tuple go to `NAME.0.npy`,
    /// `NAME.1.npy`, ... To a file that ends in `.out` or `.in`, all of them are written as text of Futhark's values.
    #[arg(long, value_name = "FILE.npy")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let program = program(&args.program, &RuleSet::default())?;
    let output = args.output.as_deref();
    let outputs = Outputs::new(output, &program, &args.data, args.force.force, out)?;
    let evaluated = session::eval(&program, &args.data.request(&program, None)?)?;
    out.diagnostics(&evaluated.warnings)?;
    let arrays = evaluated.arrays()?;
    let written = outputs.write(&arrays, out)?;
    out.event(
        "result",
        json!({
            "program": program.source.name, "entry": program.entry.name, "sizes": evaluated.sizes,
            "result": value::json(&arrays), "output": written,
        }),
    )?;
    if written.is_empty() { out.text(&value::text(&arrays)) } else { Ok(()) }
}
