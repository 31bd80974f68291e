//! `patsat rules`: lists and shows rules; its other verbs have files of their own.

mod check;
mod compare;
mod doc;
mod lint;

use super::out::{Done, Out};
use super::stats;
use crate::rules::{Condition, Library, Rule};
use crate::session::{Float, find_rule, rule_set};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The subcommands of `patsat rules`.
#[derive(clap::Subcommand)]
pub enum Verb {
    /// List the rules.
    List {
        #[command(flatten)]
        set: SetArgs,
    },
    /// Show a rule: its statement, its source, and its side conditions.
    Show {
        /// The name of the rule.
        name: String,
        #[command(flatten)]
        set: SetArgs,
    },
    /// Test rules against the interpreter, on random instances.
    Check(check::Args),
    /// Report dubious rules: bad examples or names, rules that feed themselves.
    Lint(lint::Args),
    /// Compare two sets of rules on programs: e-graphs, candidates, predicted and measured times.
    Compare(Box<compare::Args>),
    /// Print the reference of the shipped rules, as Markdown.
    Doc(doc::Args),
    /// Show what each rule does in programs: matches, new nodes, time, and its use in the best terms.
    Stats(stats::Args),
}

/// The choice of rules.
#[derive(clap::Args)]
pub struct SetArgs {
    /// Rules, separated by commas: a file, or a shipped theme or rule, is added; a folder of `*.rules` files or a
    /// shipped set replaces the default set; `-NAME` leaves out a set, theme or rule.
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub rules: Vec<PathBuf>,
}

pub fn main(verb: &Verb, out: &mut Out) -> Done {
    match verb {
        Verb::Check(args) => check::main(args, out),
        Verb::Lint(args) => lint::main(args, out),
        Verb::Compare(args) => compare::main(args, out),
        Verb::Doc(args) => doc::main(args, out),
        Verb::Stats(args) => stats::main(args, out),
        Verb::List { set } => {
            let set = rule_set(&set.rules, Float::Relaxed)?;
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            table.set_header(["rule", "theme", "law", "says"]);
            for r in set.iter() {
                out.event("rule", json(r))?;
                table.add_row([&r.name, &r.theme, &r.law.to_string(), &r.says]);
            }
            out.line(&table.to_string())?;
            out.event("rules", json!({"count": set.len(), "hash": set.hash()}))?;
            out.line(&format!("{} rules, hash {}", set.len(), set.hash()))
        }
        Verb::Show { name, set } => {
            // Rules of all shipped sets can be shown.
            let mut all = Library::shipped()?.all();
            all.extend(&rule_set(&set.rules, Float::Relaxed)?);
            let r = find_rule(&all, name)?;
            out.event("rule", json(r))?;
            out.line(&format!("{} ({}, {}, set {})", r.name, r.theme, r.law, r.set))?;
            out.line(&format!("  {}", r.says))?;
            out.line(&format!("  from: {}", r.from))?;
            for line in r.statement.trim().lines() {
                out.line(&format!("    {}", line.trim()))?;
            }
            out.line(&format!("  type: {}", r.lhs.ty()))?;
            for c in &r.when {
                out.line(&format!("  when: {}", c.name()))?;
            }
            match &r.example {
                Some(e) => out.line(&format!("  example: {e}")),
                None => Ok(()),
            }
        }
    }
}

fn json(r: &Rule) -> Value {
    json!({
        "name": r.name, "theme": r.theme, "set": r.set, "law": r.law.to_string(), "says": r.says, "from": r.from,
        "statement": r.statement, "lhs": r.lhs.to_string(), "rhs": r.rhs.to_string(),
        "when": r.when.iter().map(Condition::name).collect::<Vec<_>>(), "example": r.example,
    })
}
