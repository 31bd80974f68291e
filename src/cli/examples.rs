//! `patsat examples`: lists the shipped programs, or writes one.

use super::out::{Done, Out};
use super::output::{ForceArg, Output};
use crate::diag::{Code, Diagnostic};
use crate::lang::meant;
use crate::session::examples::Example;
use crate::session::files::Kind;
use comfy_table::{Table, presets};
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat examples`.
#[derive(clap::Args)]
#[command(after_help = "Example: patsat examples attention -o attention.pat")]
pub struct Args {
    /// Print this program instead of the list.
    name: Option<String>,
    /// Write the program to a file.
    #[arg(short, long, value_name = "FILE", requires = "name")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArg,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let Some(name) = &args.name else { return list(out) };
    let Some(example) = Example::all().find(|e| e.name == name) else {
        let text = format!("there is no example `{name}`");
        let d = Diagnostic::error(Code::UnknownName, text);
        let d = meant(d, name, Example::all().map(|e| e.name));
        return Err(d.help("`patsat examples` lists them").into());
    };
    out.event("example", json!({"name": example.name, "text": example.text}))?;
    match &args.output {
        Some(path) => {
            let output = Output::new(path, Kind::Program, &[], args.force.force, out)?;
            output.write_text(out, example.text)
        }
        None => out.text(example.text),
    }
}

/// Lists the programs.
fn list(out: &mut Out) -> Done {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for example in Example::all() {
        out.event("example", json!({"name": example.name, "about": example.about()}))?;
        table.add_row([example.name.to_owned(), example.about()]);
    }
    out.line(&table.to_string())?;
    out.line("\n`patsat examples NAME -o FILE.pat` writes one.")
}
