//! `patsat explain --why-not`: reports where a rule applied, or why it did not.

use super::out::{Done, Out};
use super::report::sizes;
use crate::diag::Result;
use crate::rules::Rule;
use crate::rules::matching::Verdict;
use crate::saturate::explain::{Outcome, Site};
use crate::session::{Float, WhyNot, find_rule, rule_set};
use serde_json::json;
use std::path::PathBuf;

/// How many of the best terms are derived.
pub const BEST: usize = 10;

/// Returns the rule with this name, of any float mode.
pub fn rule(name: &str, paths: &[PathBuf]) -> Result<Rule> {
    find_rule(&rule_set(paths, Float::Relaxed)?, name).cloned()
}

/// Reports where the rule applied, or where it came nearest.
pub fn tell(rule: &Rule, w: &WhyNot, out: &mut Out) -> Done {
    out.event(
        "why_not",
        json!({
            "program": w.file, "entry": w.entry, "sizes": w.sizes, "rule": rule.name,
            "statement": rule.statement, "left_out": w.left_out, "stat": w.stat, "result": w.outcome,
            "in_best": w.in_best, "best": w.best,
        }),
    )?;
    out.line(&format!("{} in {} {} ({})", rule.name, w.entry, sizes(&w.sizes), w.file))?;
    out.line(&format!("  {}", rule.says))?;
    out.line(&format!("  {}", rule.statement))?;
    let when: Vec<String> = rule.when.iter().map(ToString::to_string).collect();
    if !when.is_empty() {
        out.line(&format!("  when {}", when.join(", ")))?;
    }
    out.line("")?;
    if let Some(why) = &w.left_out {
        out.line(&format!("The rule was left out: {why}."))?;
    }
    let alone = w.left_out.is_none();
    match &w.outcome {
        Outcome::Applied { times, sites } => {
            let places = plural(*times, "place", "places");
            let what = match alone {
                true => format!("It applied: in {places}, and the results are in the e-graph."),
                false => format!("It could apply in {places} of the e-graph."),
            };
            out.line(&what)?;
            for s in sites {
                site("for example", s, out)?;
            }
        }
        Outcome::Condition { times, nearest, conditions } => {
            let places = plural(*times, "place", "places");
            out.line(&format!(
                "It applies nowhere: the left side is in {places}, and a side condition fails in each."
            ))?;
            site("nearest", nearest, out)?;
            for Verdict { condition, holds, values } in conditions {
                let verdict = if *holds { "holds" } else { "fails" };
                out.line(&format!("  {condition} {verdict}: {values}"))?;
            }
        }
        Outcome::Mismatch { nearest, differs } => {
            out.line("It applies nowhere: all operators of the left side are there, but do not go together.")?;
            site("nearest", nearest, out)?;
            out.line(&format!("  {differs}"))?;
        }
        Outcome::Structure { matched, of, expected, found, nearest } => {
            let Some(nearest) = nearest else {
                out.line(&format!("It applies nowhere: there is no {expected} in the e-graph."))?;
                return growth(w, out);
            };
            let how = match matched < of {
                true => format!("at most {matched} of the {of} operators of the left side"),
                false => "the operators of the left side, but not their arrangement,".to_owned(),
            };
            out.line(&format!("It applies nowhere: {how} can be found in one place."))?;
            site("nearest", nearest, out)?;
            out.line(&format!("  expected {expected}, found {}", found.join(", ")))?;
        }
    }
    growth(w, out)
}

/// Reports the rule's matches and additions, and the best terms that are derived with it.
fn growth(w: &WhyNot, out: &mut Out) -> Done {
    if let Some(stat) = &w.stat {
        out.line(&format!(
            "\nWhile the e-graph grew: {}, {} that made something new equal, {}.",
            plural(stat.matches, "match", "matches"),
            stat.applied,
            plural(stat.new_nodes, "new node", "new nodes")
        ))?;
    }
    if w.best > 0 && w.left_out.is_none() {
        let ranks: Vec<String> = w.in_best.iter().map(ToString::to_string).collect();
        out.line(&match ranks.as_slice() {
            [] => format!("None of the {} best terms is derived with it.", w.best),
            ranks => format!(
                "Derived with it: {} of the {} best terms (number {}).",
                ranks.len(),
                w.best,
                ranks.join(", ")
            ),
        })?;
    }
    Ok(())
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn site(what: &str, s: &Site, out: &mut Out) -> Done {
    out.line(&format!("{what}, {}:", s.place))?;
    out.line(&format!("    {}", s.part.marked("«", "»")))
}
