//! `patsat init`: writes a program to start with.

use super::out::{Done, Out};
use super::output::check_folder;
use crate::diag::{Code, Diagnostic};
use crate::session::files::write_folder;
use serde_json::json;
use std::path::PathBuf;

/// The program.
const TEXT: &str = include_str!("init.pat");

/// Its file.
const FILE: &str = "distance.pat";

/// The commands to try next, each with what it does.
const NEXT: [(&str, &str); 5] = [
    ("check", "check the types and sizes"),
    ("eval", "run it in the interpreter"),
    ("snapshot", "check the tests in its comments"),
    ("optimize", "find the best kernels (`--device none` if there is no OpenCL device)"),
    ("run", "run them"),
];

/// The arguments of `patsat init`.
#[derive(clap::Args)]
#[command(after_help = "Example: patsat init first && patsat eval first/distance.pat")]
pub struct Args {
    /// The folder for the program; it is created if necessary.
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    check_folder(&args.folder)?;
    let path = match args.folder.as_os_str() == "." {
        true => PathBuf::from(FILE),
        false => args.folder.join(FILE),
    };
    // A link that leads nowhere would be replaced, too.
    if path.symlink_metadata().is_ok() {
        let d = Diagnostic::error(Code::WouldReplace, format!("{} exists", path.display()));
        return Err(d.help("name another folder: `patsat init DIR`").into());
    }
    write_folder(&args.folder, &[(FILE.to_owned(), TEXT.into())], &[], false)?;
    let command = |verb: &str| format!("patsat {verb} {}", path.display());
    let commands: Vec<String> = NEXT.iter().map(|(verb, _)| command(verb)).collect();
    out.event("result", json!({"program": path, "next": commands}))?;
    out.line(&format!("{} is a program to start with. Next:", path.display()))?;
    let width = commands.iter().map(String::len).max().unwrap_or_default();
    for (command, (_, what)) in commands.iter().zip(NEXT) {
        out.line(&format!("  {command:width$}  {what}"))?;
    }
    Ok(())
}
