//! `patsat check`: checks programs.

use super::args::{file_entry, program_source};
use super::folders::programs;
use super::out::{Done, Out, Stop};
use crate::diag::{Code, Diagnostic, Failure, Severity};
use crate::lang::size::Size;
use crate::lang::typed::Entry;
use crate::session;
use serde_json::json;

/// The arguments of `patsat check`.
#[derive(clap::Args)]
pub struct Args {
    /// The programs, and folders with programs (`*.pat`, at any depth); `-` is the standard input.
    #[arg(required = true, value_name = "FILE[:ENTRY]|DIR")]
    files: Vec<String>,
    /// Trust that the operators of reductions obey the laws of their patterns, such as associativity, without testing
    /// them.
    #[arg(long)]
    trust_laws: bool,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let mut worst: Option<Failure> = None;
    let mut files = vec![];
    for file in &args.files {
        let (path, name) = file_entry(file);
        if let Some(name) = name.filter(|_| path.is_dir()) {
            let text = format!("{} is a folder, and has no entry `{name}`", path.display());
            let d = Diagnostic::error(Code::Usage, text);
            return Err(d.help(format!("name the file of the entry: `FILE.pat:{name}`")).into());
        }
        files.extend(programs(&path)?.into_iter().map(|path| (path, name)));
    }
    for (path, name) in files {
        let source = match program_source(&path) {
            Ok(source) => source,
            Err(failure) => {
                out.failure(&failure)?;
                worst = worst.or(Some(failure));
                continue;
            }
        };
        let (mut entries, mut diagnostics) = session::check(&source, args.trust_laws);
        if let Some(name) = name {
            match session::Program::check(&source, Some(name)) {
                Ok(_) => entries.retain(|e| e.name == name),
                Err(failure) => {
                    let unknown = failure.0.iter().filter(|d| d.code == Code::NoEntry);
                    diagnostics.extend(unknown.cloned());
                }
            }
        }
        out.diagnostics(&diagnostics)?;
        if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            worst = worst.or(Some(Failure(diagnostics)));
            continue;
        }
        for e in &entries {
            let params: Vec<_> = e
                .params
                .iter()
                .map(|p| json!({"name": p.name, "type": p.ty.to_string()}))
                .collect();
            let requires = requirements(e);
            out.event(
                "entry",
                json!({
                    "file": source.name, "entry": e.name, "doc": e.doc, "sizes": e.sizes,
                    "params": params, "result": e.body.ty.to_string(),
                    "requires": requires,
                }),
            )?;
            out.line(&format!("{}: {}", source.name, signature(e)))?;
            for condition in requires {
                out.line(&format!("  requires that {condition}"))?;
            }
        }
    }
    match worst {
        // The diagnostics are already printed.
        Some(failure) => Err(Stop::Exit(failure.exit())),
        None => Ok(()),
    }
}

/// Returns the conditions on an entry's sizes, without those on lengths inside an `iterate`, which have no names.
fn requirements(e: &Entry) -> Vec<String> {
    let named = |size: &Size| size.variables().iter().all(|v| e.sizes.contains(v));
    let conditions = e.divides.iter().filter(|(whole, part, _)| named(whole) && named(part));
    conditions.map(|(whole, part, _)| format!("{part} divides {whole}")).collect()
}

/// Returns the first line of an entry: its name, sizes and types.
fn signature(e: &Entry) -> String {
    let sizes: String = e.sizes.iter().map(|n| format!(" [{n}]")).collect();
    let show = |(name, ty): &(String, String)| match name.as_str() {
        "" => format!(" : {ty}"),
        name => format!(" ({name}: {ty})"),
    };
    format!("entry {}{sizes}{}", e.name, e.shown.iter().map(show).collect::<String>())
}
