//! `patsat rules check`

use crate::cli::out::{Done, Out, Stop};
use crate::diag::{Code, Failure};
use crate::rules::check::{self, Check, Counterexample, Outcome};
use crate::session::{Float, rule_set, rules_in};
use clap::value_parser;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Which rules, and how.
#[derive(clap::Args)]
pub struct Args {
    /// Rule files, or folders of them [default: the shipped rules].
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Instances of each rule.
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    instances: u32,
    /// Decides the instances.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let set = match args.files.as_slice() {
        [] => rule_set::<&str>(&[], Float::Relaxed)?,
        files => rules_in(files)?,
    };
    let how = Check { instances: args.instances as usize, seed: args.seed };
    let mut wrong = vec![];
    for rule in set.iter() {
        let outcome = check::check(rule, how);
        let (word, instances) = match &outcome {
            Outcome::Holds(n) => ("holds", *n),
            Outcome::Broken(_) => ("wrong", 0),
            Outcome::Untested(n) => ("untested", *n),
        };
        let shown = match &outcome {
            Outcome::Broken(c) => json(c),
            Outcome::Holds(_) | Outcome::Untested(_) => Value::Null,
        };
        out.event(
            "rule",
            json!({
                "name": rule.name, "theme": rule.theme, "law": rule.law.to_string(),
                "outcome": word, "instances": instances, "counterexample": shown,
            }),
        )?;
        out.line(&format!("{:<24} {word}", rule.name))?;
        if let Some(d) = check::diagnostic(rule, &outcome) {
            out.diagnostics(std::slice::from_ref(&d))?;
            wrong.push(d);
        }
    }
    out.event(
        "result",
        json!({
            "rules": set.len(), "wrong": wrong.iter().filter(|d| d.code == Code::RuleUnsound).count(),
            "untested": wrong.iter().filter(|d| d.code == Code::RuleUntested).count(),
            "instances": how.instances, "seed": how.seed,
        }),
    )?;
    if wrong.is_empty() {
        let text = format!("{} rules hold on {} instances each", set.len(), how.instances);
        return out.line(&text);
    }
    out.line(&format!("{} of {} rules do not hold", wrong.len(), set.len()))?;
    // Already told.
    Err(Stop::Exit(Failure(wrong).exit()))
}

fn json(c: &Counterexample) -> Value {
    let named = |of: &[(String, String)]| -> Value {
        of.iter().map(|(n, v)| (n.clone(), json!(v))).collect::<serde_json::Map<_, _>>().into()
    };
    let sizes: serde_json::Map<String, Value> =
        c.sizes.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
    json!({
        "sizes": sizes, "types": named(&c.types), "functions": named(&c.functions),
        "left": c.left, "right": c.right, "input": c.input, "expected": c.expected, "got": c.got,
        "notes": c.notes,
    })
}
