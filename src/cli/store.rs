//! `patsat store`: lists, cleans, exports and imports the tuning store.

use super::args::{open_store, source};
use super::clean::clean_name;
use super::out::{Done, Out};
use super::output::{ForceArg, Output, is_stdout};
use super::progress::micros;
use super::report::sizes;
use crate::diag::{Code, Diagnostic};
use crate::session::check_import;
use crate::session::files::Kind;
use crate::tune::store::{Absorbed, Dump, Entry, Keep, Run, Store};
use comfy_table::{Table, presets};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// The subcommands of `patsat store`.
#[derive(clap::Subcommand)]
pub enum Verb {
    /// List the programs, sizes and devices that were measured.
    List {
        #[command(flatten)]
        at: StoreArgs,
    },
    /// Show the best kernel of each program, size and device.
    Best {
        /// Only this entry.
        entry: Option<String>,
        #[command(flatten)]
        at: StoreArgs,
        /// Also print the kernels.
        #[arg(long)]
        source: bool,
    },
    /// Remove measurements.
    Gc {
        #[command(flatten)]
        at: StoreArgs,
        /// Keep only the K best candidates of each program, size and device; failures are removed.
        #[arg(long, value_name = "K")]
        keep: Option<usize>,
        /// Keep only measurements of the last DAYS days.
        #[arg(long, value_name = "DAYS")]
        within: Option<u64>,
        /// Keep only measurements by this version of patsat.
        #[arg(long)]
        this_version: bool,
    },
    /// Write everything in the store as JSON (see docs/store.md).
    Export {
        #[command(flatten)]
        at: StoreArgs,
        /// The output file [default: `-`, the standard output].
        #[arg(short, long, value_name = "FILE.json")]
        output: Option<PathBuf>,
        #[command(flatten)]
        force: ForceArg,
    },
    /// Import the export of another store. If both stores have measured a candidate, the newer measurement stays.
    Import {
        /// The file with the export.
        #[arg(value_name = "FILE.json")]
        file: PathBuf,
        #[command(flatten)]
        at: StoreArgs,
        #[command(flatten)]
        consent: Consent,
    },
    /// Import another store, which is not changed. If both stores have measured a candidate, the newer measurement
    /// stays.
    Merge {
        /// The other store.
        #[arg(value_name = "OTHER.sqlite")]
        other: PathBuf,
        #[command(flatten)]
        at: StoreArgs,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Consent to run imported kernels.
#[derive(clap::Args)]
pub struct Consent {
    /// Do not ask whether kernels generated from imported terms may run on this machine.
    #[arg(long, short)]
    yes: bool,
}

/// The choice of the store.
#[derive(clap::Args)]
pub struct StoreArgs {
    /// The tuning store [default: $PATSAT_STORE, or in the user's data folder].
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

pub fn main(verb: &Verb, out: &mut Out) -> Done {
    match verb {
        Verb::List { at } => {
            let store = open_store(at.store.as_ref())?;
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            table.set_header(["entry", "sizes", "device", "float", "candidates", "timed", "best"]);
            let entries = store.list()?;
            for e in &entries {
                out.event("entry", json!(e))?;
                table.add_row([
                    clean_name(&e.key.entry),
                    clean_name(&sizes(&e.key.sizes)),
                    clean_name(&e.key.device),
                    clean_name(&match e.key.trust.as_str() {
                        "" => e.key.float.clone(),
                        trust => format!("{}, {trust} trusted", e.key.float),
                    }),
                    e.candidates.to_string(),
                    e.timed.to_string(),
                    e.best_us.map_or_else(|| "-".into(), micros),
                ]);
            }
            if !entries.is_empty() {
                out.line(&table.to_string())?;
            }
            let what = if entries.is_empty() { "nothing is stored in" } else { "in" };
            out.line(&format!("{what} {}", store.path().display()))
        }
        Verb::Best { entry, at, source } => {
            let store = open_store(at.store.as_ref())?;
            let entries = store.list()?;
            let names = entry.as_slice();
            known(names, &entries, &store)?;
            let wanted = |e: &&Entry| entry.as_ref().is_none_or(|name| e.key.entry == *name);
            for e in entries.iter().filter(wanted) {
                let Some(best) = store.best(&e.key)? else { continue };
                out.event(
                    "best",
                    json!({"key": e.key, "record": best, "verified": best.verified}),
                )?;
                let time = best.median_us.map_or_else(|| "-".into(), micros);
                let verified = if best.verified { "" } else { " (not verified here yet)" };
                let (entry, device) = (clean_name(&e.key.entry), clean_name(&e.key.device));
                let sizes = clean_name(&sizes(&e.key.sizes));
                out.line(&format!("{entry} {sizes} on {device}: {time}{verified}"))?;
                out.line(&format!("  {}", best.term))?;
                let tunables: Vec<String> =
                    best.tunables.iter().map(|(k, v)| format!("{k}={v}")).collect();
                if !tunables.is_empty() {
                    out.line(&format!("  {}", tunables.join(" ")))?;
                }
                if *source {
                    out.line(best.source.trim_end())?;
                }
            }
            Ok(())
        }
        Verb::Gc { at, keep, within, this_version } => {
            let mut store = open_store(at.store.as_ref())?;
            let gone = store.gc(&Keep {
                best: *keep,
                within: within.map(|days| Duration::from_secs(days.saturating_mul(86_400))),
                tool: this_version.then(|| env!("CARGO_PKG_VERSION").to_owned()),
            })?;
            out.event("removed", json!({"candidates": gone}))?;
            out.line(&format!("{gone} measurements removed"))
        }
        Verb::Export { at, output, force } => {
            let store = open_store(at.store.as_ref())?;
            let Some(path) = output.as_ref().filter(|path| !is_stdout(path)) else {
                return out.raw(store.dump()?.text()?.as_bytes());
            };
            let inputs = [store.path().to_path_buf()];
            let output = Output::new(path, Kind::Export, &inputs, force.force, out)?;
            output.write_text(out, &store.dump()?.text()?)
        }
        Verb::Import { file, at, consent } => {
            let dump = Dump::parse(&source(file)?)?;
            take_in(&dump, &file.display().to_string(), at, consent, out)
        }
        Verb::Merge { other, at, consent } => {
            let dump = Store::copy(other)?.dump()?;
            take_in(&dump, &other.display().to_string(), at, consent, out)
        }
    }
}

/// Imports measurements, after the user agrees that their kernels may run.
fn take_in(dump: &Dump, from: &str, at: &StoreArgs, consent: &Consent, out: &mut Out) -> Done {
    dump.check(from)?;
    check_import(dump, from)?;
    // Asks before a store is created.
    if !consent.yes && !dump.runs.is_empty() {
        told(dump, from, out);
        match out.confirm("Import it?")? {
            Some(true) => {}
            Some(false) => return out.line("nothing was imported"),
            None => {
                let text = "importing lets kernels from elsewhere run, and there is no terminal to ask for consent";
                let d = Diagnostic::error(Code::Usage, text);
                return Err(d.help("allow it with `--yes`").into());
            }
        }
    }
    absorbed(open_store(at.store.as_ref())?.absorb(dump)?, out)
}

/// Describes the import and the kernels that it would run.
fn told(dump: &Dump, from: &str, out: &mut Out) {
    const SHOWN: usize = 10;
    let count: usize = dump.runs.iter().map(|run| run.candidates.len()).sum();
    out.aside(&format!("{from} has {count} measurements of"));
    for Run { key, .. } in dump.runs.iter().take(SHOWN) {
        let (entry, device) = (clean_name(&key.entry), clean_name(&key.device));
        out.aside(&format!("  {entry} {} on {device}", clean_name(&sizes(&key.sizes))));
    }
    if dump.runs.len() > SHOWN {
        out.aside(&format!("  and {} more", dump.runs.len() - SHOWN));
    }
    out.aside(
        "`run` and `optimize` will use the terms in it: patsat generates kernels from them, runs these on this machine,\n\
         and compares the first result of each with the interpreter's. Nothing else in the file is run.",
    );
}

/// Fails if the store has no results for one of the named entries.
pub fn known(names: &[String], entries: &[Entry], store: &Store) -> Done {
    let unknown = names.iter().find(|name| entries.iter().all(|e| e.key.entry != **name));
    let Some(name) = unknown else { return Ok(()) };
    let mut stored: Vec<&str> = entries.iter().map(|e| e.key.entry.as_str()).collect();
    stored.sort_unstable();
    stored.dedup();
    let text = format!("the tuning store has nothing of an entry `{name}`");
    let d = Diagnostic::error(Code::NothingStored, text)
        .note(format!("the tuning store is {}", store.path().display()));
    let d = match stored.as_slice() {
        [] => d.note("it is empty"),
        stored => d.note(format!("it has {}", stored.join(", "))),
    };
    Err(d.help("`patsat optimize FILE` measures a program and keeps the results there").into())
}

fn absorbed(a: Absorbed, out: &mut Out) -> Done {
    out.event("absorbed", json!(a))?;
    out.line(&format!(
        "{} measurements added, {} replaced by newer ones, {} known already",
        a.added, a.replaced, a.kept
    ))
}
