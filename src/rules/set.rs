//! A set of rules: the shipped one, or a person's, or both.

use super::file;
use super::rule::Rule;
use crate::diag::{Code, Diagnostic, Result, Source};
use indexmap::IndexMap;
use std::sync::Arc;

/// The shipped rule files by theme.
const SHIPPED: &[(&str, &str)] = &[
    ("simplify", include_str!("../../rules/simplify.rules")),
    ("fusion", include_str!("../../rules/fusion.rules")),
    ("split", include_str!("../../rules/split.rules")),
    ("vectorise", include_str!("../../rules/vectorise.rules")),
    ("lowering", include_str!("../../rules/lowering.rules")),
];

/// Rules by name, in order.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: IndexMap<String, Rule>,
}

impl RuleSet {
    /// The shipped default set.
    ///
    /// # Errors
    /// Never for a tested build: the shipped files are checked by a test.
    pub fn shipped() -> Result<RuleSet> {
        let mut set = RuleSet::default();
        for (theme, text) in SHIPPED {
            let source = Source::new(format!("rules/{theme}.rules"), *text);
            set.add(&source, theme)?;
        }
        Ok(set)
    }

    /// Adds the rules of a file; a rule of the same name is replaced.
    ///
    /// # Errors
    /// When the file does not parse or a rule does not type-check.
    pub fn add(&mut self, source: &Arc<Source>, theme: &str) -> Result<()> {
        let mut seen: Vec<String> = vec![];
        for rule in file::read(source, theme)? {
            if seen.contains(&rule.name) {
                return Err(Diagnostic::error(
                    Code::RuleParse,
                    format!("two rules are named `{}`", rule.name),
                )
                .at(source, rule.span, "the second")
                .into());
            }
            seen.push(rule.name.clone());
            self.rules.insert(rule.name.clone(), rule);
        }
        Ok(())
    }

    /// The rules in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values()
    }

    /// The rule of that name.
    pub fn get(&self, name: &str) -> Option<&Rule> {
        self.rules.get(name)
    }

    /// Keeps the rules for which `keep` says so.
    pub fn retain(&mut self, keep: impl Fn(&Rule) -> bool) {
        self.rules.retain(|_, r| keep(r));
    }

    /// The rules that apply to a device that has only these of the [`super::CAPABILITIES`].
    #[must_use]
    pub fn offered(&self, capabilities: &[&str]) -> RuleSet {
        let mut out = self.clone();
        out.retain(|r| r.needs.as_deref().is_none_or(|n| capabilities.contains(&n)));
        out
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// A short hash of what the rules say (not of comments), for the tuning store.
    pub fn hash(&self) -> String {
        let mut h = blake3::Hasher::new();
        for r in self.iter() {
            h.update(
                format!(
                    "{}|{}|{}|{} -> {}|{:?}|{:?}\n",
                    r.name,
                    r.law,
                    r.lhs.ty(),
                    r.lhs,
                    r.rhs,
                    r.lets,
                    r.when
                )
                .as_bytes(),
            );
        }
        h.finalize().to_hex()[..12].to_owned()
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<T: IntoIterator<Item = Rule>>(rules: T) -> RuleSet {
        RuleSet { rules: rules.into_iter().map(|r| (r.name.clone(), r)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_rules_read() {
        match RuleSet::shipped() {
            Ok(set) => assert!(set.len() > 20, "{} rules", set.len()),
            Err(e) => {
                for d in &e.0 {
                    let l = d.labels.first().map(|l| l.span.range());
                    let at = d.source.as_ref().zip(l).map(|(s, r)| s.text[r].to_owned());
                    eprintln!("{d}: {at:?} {:?}", d.notes);
                }
                panic!("{e}");
            }
        }
    }
}
