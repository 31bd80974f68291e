//! `patsat completions`: prints completion scripts.

use super::out::{Done, Out};
use clap_complete::Shell;

/// The arguments of `patsat completions`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut super::command(), "patsat", &mut script);
    out.raw(&script)
}
