//! `patsat compare`: compares the times of kernels in two plans or two tuning stores.

use super::clean::clean_name;
use super::out::{Done, Out, Stop};
use super::progress::micros;
use super::report::sizes;
use crate::diag::{Code, Diagnostic, Exit};
use crate::session::times::{Compared, Pair, Subject, Time, compare};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::path::PathBuf;

/// How many subjects a message lists.
const SHOWN: usize = 8;

/// The arguments of `patsat compare`.
#[derive(clap::Args)]
#[command(after_help = "Example: patsat compare before.plan after.plan --fail-if-slower 5%")]
pub struct Args {
    /// A plan, a tuning store, or its export: the times to compare with.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Another plan or store.
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Fail, with status 1, if kernels of B are slower than those of A by more than this share.
    #[arg(long, value_name = "P%", value_parser = percent)]
    fail_if_slower: Option<f64>,
}

/// Parses a share such as `5%`, and returns the number before the sign.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    let share = number.filter(|n| n.is_finite() && *n >= 0.0);
    share.ok_or_else(|| format!("`{text}` is not a share such as `5%`"))
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let compared = compare(&args.a, &args.b)?;
    if compared.pairs.is_empty() {
        return Err(nothing(args, &compared).into());
    }
    let slow =
        |pair: &Pair| args.fail_if_slower.is_some_and(|most| pair.ratio() > 1.0 + most / 100.0);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["entry", "sizes", "device", "float", "A", "B", "B / A"]);
    for pair in &compared.pairs {
        let s = &pair.subject;
        out.event(
            "pair",
            json!({
                "entry": s.entry, "program": s.program, "sizes": s.sizes, "device": s.device,
                "float": s.float, "predicted": pair.is_predicted(),
                "a": time(pair.a), "b": time(pair.b), "ratio": pair.ratio(), "slower": slow(pair),
            }),
        )?;
        let predicted = if pair.is_predicted() { " predicted" } else { "" };
        let slower = if slow(pair) { " slower" } else { "" };
        table.add_row([
            clean_name(&s.entry),
            clean_name(&sizes(&s.sizes)),
            clean_name(&s.device),
            clean_name(&s.float),
            micros(pair.a.us),
            micros(pair.b.us),
            format!("{:.3}{predicted}{slower}", pair.ratio()),
        ]);
    }
    out.line(&table.to_string())?;
    for (name, path, only) in [("A", &args.a, &compared.only_a), ("B", &args.b, &compared.only_b)] {
        if !only.is_empty() {
            out.line(&format!("{} more only in {name}, {}", only.len(), path.display()))?;
        }
    }
    let slower: Vec<&Pair> = compared.pairs.iter().filter(|pair| slow(pair)).collect();
    out.event(
        "result",
        json!({
            "compared": compared.pairs.len(), "slower": slower.len(),
            "only_a": compared.only_a.len(), "only_b": compared.only_b.len(),
        }),
    )?;
    match args.fail_if_slower.filter(|_| !slower.is_empty()) {
        Some(most) => {
            out.diagnostics(&[too_slow(args, most, &slower, compared.pairs.len())])?;
            Err(Stop::Exit(Exit::Check))
        }
        None => Ok(()),
    }
}

fn time(time: Time) -> Value {
    json!({"us": time.us, "spread_us": time.spread_us})
}

/// Says what is too slow.
fn too_slow(args: &Args, most: f64, slower: &[&Pair], all: usize) -> Diagnostic {
    let (a, b) = (args.a.display(), args.b.display());
    let text = format!(
        "kernels in {b} are more than {most}% slower than in {a}: {} of {all}",
        slower.len()
    );
    let mut d = Diagnostic::error(Code::Slower, text);
    for pair in slower.iter().take(SHOWN) {
        let (a, b) = (micros(pair.a.us), micros(pair.b.us));
        d = d.note(format!("{}: {b}, and {a} before", named(&pair.subject)));
    }
    let d = d.help("if nothing has changed, measure again: `patsat optimize FILE --anew`");
    d.help("a limit below the spread of the measurements fails now and then")
}

/// Says why nothing can be compared.
fn nothing(args: &Args, compared: &Compared) -> Diagnostic {
    let text = "the two files have no kernels in common";
    let mut d = Diagnostic::error(Code::Usage, text);
    for (path, only) in [(&args.a, &compared.only_a), (&args.b, &compared.only_b)] {
        d = d.note(format!("{}: {}", path.display(), listed(only)));
    }
    d.help("times are compared for the same program, sizes, device and float mode, if both are measured or both predicted")
}

fn listed(subjects: &[Subject]) -> String {
    let mut names: Vec<String> = subjects.iter().take(SHOWN).map(named).collect();
    if subjects.len() > SHOWN {
        names.push(format!("{} more", subjects.len() - SHOWN));
    }
    if names.is_empty() { "nothing that was timed".to_owned() } else { names.join("; ") }
}

fn named(s: &Subject) -> String {
    let text = format!("{} {} on {} ({})", s.entry, sizes(&s.sizes), s.device, s.float);
    clean_name(&text)
}
