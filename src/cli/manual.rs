//! `patsat man`: writes manual pages.

use super::out::{Done, Out};
use super::output::check_folder;
use crate::diag::{Code, Diagnostic};
use crate::session::files;
use serde_json::json;
use std::path::PathBuf;

/// The arguments of `patsat man`.
#[derive(clap::Args)]
#[command(after_help = "Example: patsat man ~/.local/share/man/man1 && man patsat-optimize")]
pub struct Args {
    /// The folder for the pages, one for each command; it is created if necessary.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    check_folder(&args.folder)?;
    let mut pages = vec![];
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    add(&command, &mut pages).map_err(|e| {
        Diagnostic::error(Code::Internal, format!("a manual page cannot be written: {e}"))
    })?;
    files::write_folder(&args.folder, &pages, &[], false)?;
    let names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
    out.event("result", json!({"folder": args.folder, "pages": names}))?;
    out.line(&format!("{} pages in {}", pages.len(), args.folder.display()))
}

/// Adds the pages of a command and its subcommands.
fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let mut text = vec![];
    let page = clap_mangen::Man::new(command.clone());
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    command.get_subcommands().filter(|c| !c.is_hide_set()).try_for_each(|c| add(c, pages))
}
