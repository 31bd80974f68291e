//! `patsat rules check`: tests rules on random instances.

use crate::cli::out::{Done, Out, Stop};
use crate::diag::{Code, Failure};
use crate::rules::check::{Check, Counterexample, Outcome, check_all};
use crate::rules::{Library, Rule};
use crate::session::rules_in;
use clap::value_parser;
use indexmap::IndexMap;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The arguments of `patsat rules check`.
#[derive(clap::Args)]
pub struct Args {
    /// Rule files, or folders of them. Rules of named sets are included [default: all shipped rules].
    #[arg(value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// The number of instances of each rule.
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    instances: u32,
    /// The seed of the instances.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

pub fn main(args: &Args, out: &mut Out) -> Done {
    let library = Library::shipped()?.all();
    let set = match args.files.as_slice() {
        [] => library.clone(),
        files => rules_in(files)?,
    };
    // The rules that derivations may name.
    let mut all = library;
    all.extend(&set);
    let how = Check { instances: args.instances as usize, seed: args.seed };
    let rules: Vec<&Rule> = set.iter().collect();
    let mut wrong = vec![];
    let mut sets: IndexMap<&str, usize> = IndexMap::new();
    for rule in &rules {
        *sets.entry(&rule.set).or_default() += 1;
    }
    check_all(&rules, &all, how, |rule, tested| {
        let (word, instances) = match &tested.outcome {
            Outcome::Holds(n) if tested.wrong.is_some() => ("derivation fails", *n),
            Outcome::Holds(n) => ("holds", *n),
            Outcome::Broken(_) => ("wrong", 0),
            Outcome::Untested(n) => ("untested", *n),
        };
        let shown = match &tested.outcome {
            Outcome::Broken(c) => json(c),
            Outcome::Holds(_) | Outcome::Untested(_) => Value::Null,
        };
        out.event(
            "rule",
            json!({
                "name": rule.name, "theme": rule.theme, "set": rule.set, "law": rule.law.to_string(),
                "outcome": word, "instances": instances, "counterexample": shown,
            }),
        )?;
        out.line(&format!("{:<24} {word}", rule.name))?;
        if let Some(d) = tested.wrong {
            out.diagnostics(std::slice::from_ref(&d))?;
            wrong.push(d);
        }
        Ok::<_, Stop>(())
    })?;
    let count = |code: Code| wrong.iter().filter(|d| d.code == code).count();
    out.event(
        "result",
        json!({
            "rules": set.len(), "sets": sets, "wrong": count(Code::RuleUnsound),
            "untested": count(Code::RuleUntested), "underived": wrong.len()
                - count(Code::RuleUnsound) - count(Code::RuleUntested),
            "instances": how.instances, "seed": how.seed,
        }),
    )?;
    let sets: Vec<String> = sets.iter().map(|(name, n)| format!("{name} {n}")).collect();
    if wrong.is_empty() {
        let (rules, sets) = (set.len(), sets.join(", "));
        let text = format!("{rules} rules hold on {} instances each ({sets})", how.instances);
        return out.line(&text);
    }
    out.line(&format!("{} of {} rules do not hold ({})", wrong.len(), set.len(), sets.join(", ")))?;
    // The diagnostics are already printed.
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
