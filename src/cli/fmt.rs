//! `patsat fmt`: formats programs.

use super::args::source;
use super::folders::programs;
use super::out::{Done, Out, Stop};
use super::output::is_stdout;
use crate::diag::{Code, Diagnostic, Failure, Result};
use crate::session::{self, files::write};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The arguments of `patsat fmt`.
#[derive(clap::Args)]
pub struct Args {
    /// The programs, and folders with programs (`*.pat`, at any depth), formatted in place; `-` formats the standard
    /// input to the standard output.
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Change nothing; fail if a file is not in the standard form.
    #[arg(long)]
    check: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let files = args.files.iter().map(|path| programs(path)).collect::<Result<Vec<_>>>()?.concat();
    let mut worst: Option<Failure> = None;
    for path in &files {
        match one(path, args.check, out) {
            // What is wrong with one file says nothing about the others.
            Err(Stop::Failure(failure)) => {
                out.failure(&failure)?;
                worst = worst.or(Some(failure));
            }
            done => done?,
        }
    }
    // The diagnostics are already printed.
    worst.map_or(Ok(()), |failure| Err(Stop::Exit(failure.exit())))
}

/// Formats one file.
fn one(path: &Path, check: bool, out: &mut Out) -> Done {
    let source = source(path)?;
    let text = session::format(&source)?;
    let changed = text != source.text;
    let to_stdout = is_stdout(path) && !check;
    let shown = to_stdout.then_some(&text);
    out.event("formatted", json!({"file": source.name, "changed": changed, "text": shown}))?;
    if check {
        if changed {
            let text = format!("{} is not in the standard form", source.name);
            let d = Diagnostic::error(Code::Unformatted, text);
            return Err(d.help(format!("run `patsat fmt {}`", path.display())).into());
        }
    } else if to_stdout {
        if !out.is_json() {
            out.raw(text.as_bytes())?;
        }
    } else if changed {
        write(path, |to| to.write_all(text.as_bytes()))?;
    }
    Ok(())
}
