//! `patsat snapshot`: checks the expectations in the comments of programs.

use super::args::source;
use super::folders::programs;
use super::out::{Done, Out, Stop};
use super::output::is_stdout;
use crate::diag::{Code, Diagnostic, Exit, Failure, Result, Source};
use crate::session::files::write;
use crate::session::snapshot::{self, Block, Checked, Verdict};
use serde_json::json;
use similar::TextDiff;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The arguments of `patsat snapshot`.
#[derive(clap::Args)]
pub struct Args {
    /// Programs with expectations in their comments, and folders with such programs (`*.pat`, at any depth); `-` is the
    /// standard input.
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Update the expectations that do not hold, in place; nothing else is changed.
    #[arg(long)]
    bless: bool,
}

#[derive(Default)]
struct Tally {
    all: usize,
    holding: usize,
    renewed: usize,
    /// The first failure of a file as a whole.
    worst: Option<Failure>,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    if args.bless && args.paths.iter().any(|path| is_stdout(path)) {
        let d = Diagnostic::error(Code::Usage, "`--bless` updates files, and `-` is none");
        return Err(d.help("write the program to a file first").into());
    }
    let mut tally = Tally::default();
    let files = args.paths.iter().map(|path| programs(path)).collect::<Result<Vec<_>>>()?.concat();
    for path in &files {
        let checked = source(path).and_then(|source| snapshot::check(&source));
        match checked {
            Ok(checked) => file(path, &checked, args.bless, &mut tally, out)?,
            Err(failure) => {
                out.failure(&failure)?;
                tally.worst = tally.worst.or(Some(failure));
            }
        }
    }
    let Tally { all, holding, renewed, worst } = tally;
    if all == 0 && worst.is_none() {
        let text = format!("no expectations in {} file{}", files.len(), plural(files.len()));
        let d = Diagnostic::error(Code::Usage, text);
        return Err(d.help("`docs/snapshots.md` says how they are written").into());
    }
    out.event("result", json!({"expectations": all, "hold": holding, "renewed": renewed}))?;
    let mut summary = format!("{holding} of {all} expectations hold");
    if renewed > 0 {
        summary.push_str(&format!(", {renewed} of them new"));
    }
    out.line(&summary)?;
    match worst {
        Some(failure) => Err(Stop::Exit(failure.exit())),
        None if holding < all => Err(Stop::Exit(Exit::Check)),
        None => Ok(()),
    }
}

fn file(path: &Path, checked: &Checked, bless: bool, tally: &mut Tally, out: &mut Out) -> Done {
    let source = &checked.source;
    for (i, (block, verdict)) in checked.blocks.iter().enumerate() {
        let renewed = bless && matches!(verdict, Verdict::Differs(_));
        let holds = renewed || matches!(verdict, Verdict::Holds);
        tally.all += 1;
        tally.holding += usize::from(holds);
        let after = checked.renewed(i).map(|text| diff(source, &text));
        out.event(
            "expectation",
            json!({
                "file": source.name, "line": block.line(source), "kind": block.kind.to_string(),
                "holds": holds, "renewed": renewed, "diff": after,
                "missing": match verdict {
                    Verdict::Missing(m) => Some(m.to_string()),
                    _ => None,
                },
            }),
        )?;
        if !holds {
            failed(source, block, verdict, after.as_deref(), out)?;
        }
    }
    let (text, count) = checked.blessed();
    if bless && count > 0 {
        write(path, |to| to.write_all(text.as_bytes()))?;
        tally.renewed += count;
        out.line(&format!("{}: {count} expectation{} renewed", source.name, plural(count)))?;
    }
    Ok(())
}

fn failed(
    source: &Arc<Source>,
    block: &Block,
    verdict: &Verdict,
    diff: Option<&str>,
    out: &mut Out,
) -> Done {
    let what = format!("this expectation does not hold: {}", block.kind);
    let d = Diagnostic::error(Code::Unexpected, what).at(source, block.header, "");
    let d = match verdict {
        Verdict::Holds | Verdict::Differs(_) => d.help("`--bless` renews it"),
        Verdict::Missing(missing) => d.note(missing.to_string().trim_end()),
        Verdict::Accepted => d.note("nothing is wrong with the program"),
        Verdict::Refused(_) => d.note("the program could not be rewritten"),
    };
    out.diagnostics(&[d])?;
    if let Verdict::Refused(failure) = verdict {
        out.failure(failure)?;
    }
    out.text(diff.unwrap_or_default())
}

/// Returns the change by `--bless`, as a unified diff of the file.
fn diff(source: &Source, after: &str) -> String {
    TextDiff::from_lines(source.text.as_str(), after)
        .unified_diff()
        .header(&source.name, &format!("{} (renewed)", source.name))
        .to_string()
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}
