//! The rules of the papers, each with the shipped rules that state it.

use crate::diag::{Code, Diagnostic, Result};
use serde::Deserialize;

/// A rule of a paper.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRule {
    /// Paper and equation.
    pub source: String,
    /// The rule as printed there.
    pub states: String,
    /// The shipped rules that state it, by family.
    pub rules: Vec<String>,
    /// The differences here, with their reasons.
    #[serde(default)]
    pub why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    rule: Vec<PaperRule>,
}

/// Returns the table `rules/papers.toml`.
///
/// # Errors
/// Never for a tested build: a test reads the table and looks up every rule that it names.
pub fn papers() -> Result<Vec<PaperRule>> {
    let table: Table = toml::from_str(include_str!("../../rules/papers.toml"))
        .map_err(|e| Diagnostic::error(Code::Internal, format!("rules/papers.toml: {e}")))?;
    Ok(table.rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Library;

    #[test]
    fn every_rule_that_is_named_is_there() {
        let all = Library::shipped().expect("shipped rules").all();
        let families: Vec<&String> = all.iter().map(|r| &r.family).collect();
        for p in papers().expect("the table") {
            assert!(!p.rules.is_empty() || !p.why.is_empty(), "{} says nothing", p.source);
            for r in &p.rules {
                assert!(families.contains(&r), "{}: no rule `{r}`", p.source);
            }
        }
    }
}
