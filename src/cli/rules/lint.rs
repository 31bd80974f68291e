//! `patsat rules lint`: reports dubious rules.

use crate::cli::out::{Done, Out, Stop};
use crate::diag::Exit;
use crate::rules::Library;
use crate::session::{Float, lint_rules, rule_set, rules_in};
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat rules lint`.
#[derive(clap::Args)]
pub struct Args {
    /// Rule files, or folders of them. Rules of named sets are included [default: all shipped rules].
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let (own, set) = if args.files.is_empty() {
        let all = Library::shipped()?.all();
        (all.clone(), all)
    } else {
        let own = rules_in(&args.files)?;
        let mut set = rule_set(&args.files, Float::Relaxed)?;
        set.extend(&own);
        (own, set)
    };
    let found = lint_rules(&own, &set);
    out.diagnostics(&found)?;
    out.event("result", json!({"rules": own.len(), "found": found.len()}))?;
    match found.len() {
        0 => out.line(&format!("{} rules, nothing found", own.len())),
        n => {
            out.line(&format!("{} rules, {n} things found", own.len()))?;
            Err(Stop::Exit(Exit::Check))
        }
    }
}
