//! Sets of rules: shipped, of the user, or both.

use super::condition::Condition;
use super::file;
use super::rule::Rule;
use crate::diag::{Code, Diagnostic, Result, Source};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// The shipped rule files by theme.
const SHIPPED: &[(&str, &str)] = &[
    ("simplify", include_str!("../../rules/simplify.rules")),
    ("fusion", include_str!("../../rules/fusion.rules")),
    ("split", include_str!("../../rules/split.rules")),
    ("vectorise", include_str!("../../rules/vectorise.rules")),
    ("tiling", include_str!("../../rules/tiling.rules")),
    ("slices", include_str!("../../rules/slices.rules")),
    ("scans", include_str!("../../rules/scans.rules")),
    ("lowering", include_str!("../../rules/lowering.rules")),
    ("warp", include_str!("../../rules/warp.rules")),
    ("primitive", include_str!("../../rules/primitive.rules")),
    ("pairs", include_str!("../../rules/pairs.rules")),
    ("thesis", include_str!("../../rules/thesis.rules")),
    ("partials", include_str!("../../rules/partials.rules")),
    ("published", include_str!("../../rules/published.rules")),
];

/// The shipped rules: files by theme, each of which belongs to a set.
#[derive(Clone, Debug)]
pub struct Library {
    themes: IndexMap<String, Theme>,
}

#[derive(Clone, Debug)]
struct Theme {
    header: file::Header,
    rules: Vec<Rule>,
}

impl Library {
    /// Returns the shipped files. They are read once in a process, because reading takes a good part of a
    /// quick command's time.
    ///
    /// # Errors
    /// Never for a tested build: the shipped files are checked by a test.
    pub fn shipped() -> Result<&'static Library> {
        static READ: OnceLock<Library> = OnceLock::new();
        match READ.get() {
            Some(library) => Ok(library),
            None => {
                let library = Library::read()?;
                Ok(READ.get_or_init(|| library))
            }
        }
    }

    fn read() -> Result<Library> {
        let mut themes = IndexMap::new();
        for (theme, text) in SHIPPED {
            let source = Source::new(format!("rules/{theme}.rules"), *text);
            let file = file::read(&source, theme)?;
            themes.insert((*theme).to_owned(), Theme { header: file.header, rules: file.rules });
        }
        Ok(Library { themes })
    }

    /// Returns the names of the sets, the default one first.
    pub fn sets(&self) -> Vec<&str> {
        let mut out: Vec<&str> = vec![];
        for theme in self.themes.values() {
            if !out.contains(&theme.header.set.as_str()) {
                out.push(&theme.header.set);
            }
        }
        out
    }

    /// Returns a set by name: the rules of its files, after those of other themes that it includes.
    pub fn set(&self, name: &str) -> Option<RuleSet> {
        let files: Vec<&Theme> = self.themes.values().filter(|t| t.header.set == name).collect();
        if files.is_empty() {
            return None;
        }
        let mut out = RuleSet::default();
        for name in files.iter().flat_map(|t| &t.header.with) {
            out.extend(&self.theme(name).or_else(|| self.named(name))?);
        }
        for theme in files {
            out.take(theme);
        }
        Some(out)
    }

    /// Returns the rules of one file.
    pub fn theme(&self, name: &str) -> Option<RuleSet> {
        let mut out = RuleSet::default();
        out.take(self.themes.get(name)?);
        Some(out)
    }

    /// Returns the rule with this name, or all rules that a `for` clause generated under this name.
    pub fn named(&self, name: &str) -> Option<RuleSet> {
        let all = self.themes.values().flat_map(|t| &t.rules);
        let found: RuleSet = all.filter(|r| r.name == name || r.family == name).cloned().collect();
        (!found.is_empty()).then_some(found)
    }

    /// Returns the names of the themes.
    pub fn themes(&self) -> impl Iterator<Item = &str> {
        self.themes.keys().map(String::as_str)
    }

    /// Returns every shipped rule.
    pub fn all(&self) -> RuleSet {
        let mut out = RuleSet::default();
        self.themes.values().for_each(|t| out.take(t));
        out
    }
}

/// Rules by name, in order.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: IndexMap<String, Rule>,
}

impl RuleSet {
    /// Returns the shipped default set.
    ///
    /// # Errors
    /// Never for a tested build: the shipped files are checked by a test.
    pub fn shipped() -> Result<RuleSet> {
        Ok(Library::shipped()?.set("default").unwrap_or_default())
    }

    fn take(&mut self, theme: &Theme) {
        self.rules.extend(theme.rules.iter().map(|r| (r.name.clone(), r.clone())));
    }

    /// Adds the rules of another set; a rule of the same name is replaced.
    pub fn extend(&mut self, other: &RuleSet) {
        self.rules.extend(other.rules.iter().map(|(n, r)| (n.clone(), r.clone())));
    }

    /// Adds the rules of a file; a rule of the same name is replaced.
    ///
    /// # Errors
    /// When the file does not parse or a rule does not type-check.
    pub fn add(&mut self, source: &Arc<Source>, theme: &str) -> Result<()> {
        let mut seen = HashSet::new();
        for rule in file::read(source, theme)?.rules {
            if !seen.insert(rule.name.clone()) {
                return Err(Diagnostic::error(
                    Code::RuleParse,
                    format!("two rules are named `{}`", rule.name),
                )
                .at(source, rule.span, "the second")
                .into());
            }
            self.rules.insert(rule.name.clone(), rule);
        }
        Ok(())
    }

    /// Whether a rule asks if a number divides a length, which needs lengths that are numbers.
    pub fn divides_numbers(&self) -> bool {
        self.iter().any(|r| r.when.iter().any(|c| matches!(c, Condition::Divides(..))))
    }

    /// Returns the rules in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values()
    }

    /// Returns the rule with that name.
    pub fn get(&self, name: &str) -> Option<&Rule> {
        self.rules.get(name)
    }

    /// Keeps the rules for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&Rule) -> bool) {
        self.rules.retain(|_, r| keep(r));
    }

    /// Returns the rules for a device that has only these of the [`super::CAPABILITIES`].
    #[must_use]
    pub fn offered(&self, capabilities: &[&str]) -> RuleSet {
        let mut out = self.clone();
        out.retain(|r| r.needs.as_deref().is_none_or(|n| capabilities.contains(&n)));
        out
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns a short hash of the rules (not of comments), for the tuning store.
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
        match Library::shipped() {
            Ok(library) => {
                for name in library.sets() {
                    let set = library.set(name).expect("its themes exist");
                    assert!(!set.is_empty(), "{name}");
                }
                let default = library.set("default").expect("the default set");
                assert!(default.iter().all(|r| r.set == "default"));
                let count = library.themes.values().map(|t| t.rules.len()).sum::<usize>();
                assert_eq!(library.all().len(), count, "names are unique");
            }
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
