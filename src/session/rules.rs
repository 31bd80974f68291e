//! Reading text files, and the rule set a person asks for.

use crate::calculus::term::Term;
use crate::diag::{Code, Diagnostic, Limits, Result, Source};
use crate::rules::check::{self, Check};
use crate::rules::lint::{self, Trial};
use crate::rules::{Law, Rule, RuleSet};
use crate::saturate::{self, StopReason};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which arithmetic a rewrite may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Float {
    /// Only the order of a reduction.
    #[default]
    Exact,
    /// Also contraction to `fma`, reciprocals and the like.
    Relaxed,
}

impl Float {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Float::Exact => "exact",
            Float::Relaxed => "relaxed",
        }
    }
}

/// Reads a text file; `-` is the standard input.
///
/// # Errors
/// [`Code::Io`] when it cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> Result<Arc<Source>> {
    let unreadable = |e: std::io::Error| {
        Diagnostic::error(Code::Io, format!("{} cannot be read: {e}", path.display()))
    };
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(unreadable)?;
        return Ok(Source::new("<standard input>", text));
    }
    Ok(Source::new(path.display().to_string(), fs::read_to_string(path).map_err(unreadable)?))
}

/// The shipped rules, changed by what is at `paths`: a folder (of `*.rules` files) replaces the set, a
/// file extends it (a rule of a known name replaces that rule). Rules that only hold approximately are left
/// out of an exact set.
///
/// # Errors
/// When a file cannot be read, or a rule does not parse or type-check.
pub fn rule_set(paths: &[PathBuf], float: Float) -> Result<RuleSet> {
    let mut set = RuleSet::shipped()?;
    for path in paths.iter().filter(|p| p.is_dir()) {
        set = RuleSet::default();
        for file in rule_files_in(path)? {
            add(&mut set, &file)?;
        }
    }
    for path in paths.iter().filter(|p| !p.is_dir()) {
        add(&mut set, path)?;
    }
    if float == Float::Exact {
        set.retain(|r| match r.law {
            Law::Exact | Law::Reassoc => true,
            Law::Approx => false,
        });
    }
    Ok(set)
}

/// The rules of files and folders alone, without the shipped ones.
///
/// # Errors
/// As [`rule_set`].
pub fn rules_in(paths: &[PathBuf]) -> Result<RuleSet> {
    let mut set = RuleSet::default();
    for path in paths {
        if path.is_dir() {
            for file in rule_files_in(path)? {
                add(&mut set, &file)?;
            }
        } else {
            add(&mut set, path)?;
        }
    }
    Ok(set)
}

/// Tests the rules of a set that are not, word for word, shipped ones (those are tested when patsat is built):
/// what rewrites programs must be an equality.
///
/// # Errors
/// [`Code::RuleUnsound`] with a counterexample for each rule that is none, [`Code::RuleUntested`] for one that
/// no instance can be made of.
pub fn check_own_rules(set: &RuleSet, how: Check) -> Result<()> {
    let shipped = RuleSet::shipped()?;
    let known = |r: &Rule| {
        let same = |s: &Rule| {
            (&s.lhs, &s.rhs, &s.lets, &s.when, s.law) == (&r.lhs, &r.rhs, &r.lets, &r.when, r.law)
        };
        shipped.get(&r.name).is_some_and(same)
    };
    let wrong: Vec<Diagnostic> = set
        .iter()
        .filter(|r| !known(r))
        .filter_map(|r| check::diagnostic(r, &check::check(r, how)))
        .map(|d| d.help("`--trust-rules` uses rules untested"))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

/// Everything dubious about `rules`, which will be used in `set`: see [`lint::lint`].
pub fn lint_rules(rules: &RuleSet, set: &RuleSet) -> Vec<Diagnostic> {
    let (rules, all): (Vec<&Rule>, Vec<&Rule>) = (rules.iter().collect(), set.iter().collect());
    lint::lint(&rules, &all, &alone)
}

/// Runs one rule alone on a term. A rule that bounds its depth is done in a few rounds.
fn alone(rule: &Rule, term: &Term) -> Result<Trial> {
    let limits =
        Limits { iterations: 16, nodes: 4_000, saturation_time: None, ..Limits::default() };
    let only = RuleSet::from_iter([rule.clone()]);
    let report = saturate::saturate(term, &only, &limits)?.report;
    Ok(Trial {
        applied: report.rules.get(&rule.name).is_some_and(|s| s.applied > 0),
        grows: report.stop_reason != StopReason::Saturated,
        rounds: report.iterations.len(),
        nodes: report.nodes,
    })
}

/// The rule files of a folder, by name.
fn rule_files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |e: std::io::Error| {
        Diagnostic::error(Code::Io, format!("{} cannot be read: {e}", folder.display()))
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(unreadable)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "rules"))
        .collect();
    files.sort();
    if files.is_empty() {
        let message = format!("{} has no `*.rules` files", folder.display());
        return Err(Diagnostic::error(Code::Io, message).into());
    }
    Ok(files)
}

fn add(set: &mut RuleSet, path: &Path) -> Result<()> {
    let theme = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    set.add(&read(path)?, &theme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_replace_and_files_extend() {
        let shipped = rule_set(&[], Float::Relaxed).unwrap();
        let folder = tempfile::TempDir::new().unwrap();
        assert_eq!(
            rule_set(&[folder.path().into()], Float::Exact).unwrap_err().0[0].code,
            Code::Io
        );
        let file = folder.path().join("simplify.rules");
        fs::write(&file, include_str!("../../rules/simplify.rules")).unwrap();
        let one = rule_set(&[folder.path().into()], Float::Relaxed).unwrap();
        assert!(one.len() < shipped.len() && !one.is_empty());
        let all = rule_set(&[file], Float::Relaxed).unwrap();
        assert_eq!(all.len(), shipped.len());
        assert_eq!(
            rule_set(&["/no/such.rules".into()], Float::Exact).unwrap_err().0[0].code,
            Code::Io
        );
    }
}
