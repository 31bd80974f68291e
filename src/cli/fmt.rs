//! `patsat fmt`: formats programs.

use super::args::source;
use super::out::{Done, Out, Stop};
use super::output::is_stdout;
use crate::diag::{Code, Diagnostic, Exit};
use crate::session::{self, files::write};
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat fmt`.
#[derive(clap::Args)]
pub struct Args {
    /// The programs, formatted in place; `-` formats the standard input to the standard output.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing; fail if a file is not in the standard form.
    #[arg(long)]
    check: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let mut unformatted = vec![];
    for path in &args.files {
        let source = source(path)?;
        let text = session::format(&source)?;
        let changed = text != source.text;
        let to_stdout = is_stdout(path) && !args.check;
        let shown = to_stdout.then_some(&text);
        out.event("formatted", json!({"file": source.name, "changed": changed, "text": shown}))?;
        if args.check {
            if changed {
                let text = format!("{} is not in the standard form", source.name);
                let d = Diagnostic::error(Code::Unformatted, text);
                unformatted.push(d.help(format!("run `patsat fmt {}`", path.display())));
            }
        } else if to_stdout {
            if !out.is_json() {
                out.raw(text.as_bytes())?;
            }
        } else if changed {
            write(path, |to| to.write_all(text.as_bytes()))?;
        }
    }
    out.diagnostics(&unformatted)?;
    if unformatted.is_empty() { Ok(()) } else { Err(Stop::Exit(Exit::Check)) }
}
