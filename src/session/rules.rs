//! Reads source files, and assembles the rule set that the user asks for.

use crate::calculus::elaborate;
use crate::calculus::term::Term;
use crate::diag::{Code, Diagnostic, Failure, Limits, Result, Source};
use crate::lang::distance;
use crate::rules::check::{self, Check};
use crate::rules::lint::{self, Trial};
use crate::rules::{Law, Library, Rule, RuleSet};
use crate::saturate::{self, StopReason};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Which arithmetic a rewrite may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Float {
    /// Only the order of reductions.
    Exact,
    /// Also the contraction of a product and a sum to `fma`, as the C language allows. It loses no accuracy.
    #[default]
    Contract,
    /// Also what holds only up to rounding: reciprocals, sums in another order, and the like.
    Relaxed,
}

impl Float {
    /// Returns the mode with a name.
    pub fn from_name(name: &str) -> Option<Float> {
        [Float::Exact, Float::Contract, Float::Relaxed].into_iter().find(|f| f.name() == name)
    }

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Float::Exact => "exact",
            Float::Contract => "contract",
            Float::Relaxed => "relaxed",
        }
    }

    /// Returns the mode with this name; [`Float::Exact`] for an unknown name.
    pub fn named(name: &str) -> Float {
        let known = [Float::Contract, Float::Relaxed];
        known.into_iter().find(|f| f.name() == name).unwrap_or(Float::Exact)
    }

    /// Returns the forms of a program that it allows.
    pub(super) fn forms(self, program: &elaborate::Program) -> Vec<Term> {
        program.forms_if(self == Float::Relaxed)
    }

    /// Whether rules of this law may be used.
    pub fn allows(self, law: Law) -> bool {
        match law {
            Law::Exact | Law::Reassoc => true,
            Law::Approx => self == Float::Relaxed,
        }
    }
}

/// The text of the standard input, which can be read once only. A command may read its program several times.
static STDIN: OnceLock<String> = OnceLock::new();

/// Reads a text file; `-` is the standard input.
///
/// # Errors
/// [`Code::Io`] when it cannot be read, or is not UTF-8.
pub fn read(path: &Path) -> Result<Arc<Source>> {
    if path.as_os_str() == "-" {
        let text = match STDIN.get() {
            Some(text) => text,
            None => {
                let text = io::read_to_string(io::stdin());
                let text = text.map_err(|e| unreadable(Path::new("<stdin>"), &e))?;
                STDIN.get_or_init(|| text)
            }
        };
        return Ok(Source::new("<stdin>", text.as_str()));
    }
    let text = fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    Ok(Source::new(path.display().to_string(), text))
}

/// Returns the rules that `specs` ask for. Each specification is a list, separated by commas, of these items:
///
/// - a shipped set (`default`, `thesis`, ...) or a folder of `*.rules` files: the base, in place of the default set.
///   If a folder has rules of the default set, its rules that belong to other sets are left out;
/// - a file, a shipped theme (`lowering`) or a shipped rule: added to the base, replacing rules of the same name;
/// - `-NAME`: the set, theme or rule is left out.
///
/// Rules of a law that `float` does not allow are left out.
///
/// # Errors
/// When a name is unknown, a file cannot be read, or a rule does not parse or type-check.
pub fn rule_set<P: AsRef<Path>>(specs: &[P], float: Float) -> Result<RuleSet> {
    let library = Library::shipped()?;
    let named = |name: &str| {
        library.set(name).or_else(|| library.theme(name)).or_else(|| library.named(name))
    };
    let items: Vec<String> = specs.iter().flat_map(|s| items(s.as_ref())).collect();
    // The order of the items does not matter: the base comes first, then the additions, then the omissions.
    let mut base: Option<RuleSet> = None;
    let (mut added, mut dropped) = (vec![], vec![]);
    for item in &items {
        if Path::new(item).is_dir() {
            let mut all = folder(Path::new(item))?;
            // As in the shipped folder, rules of named sets are used only on request.
            if all.iter().any(|r| r.set == "default") {
                all.retain(|r| r.set == "default");
            }
            base.get_or_insert_default().extend(&all);
        } else if Path::new(item).is_file() {
            added.push(item);
        } else if let Some(set) = library.set(item) {
            base.get_or_insert_default().extend(&set);
        } else if let Some(name) = item.strip_prefix('-') {
            dropped.push(named(name).ok_or_else(|| unknown(name, library))?);
        } else if named(item).is_some() {
            added.push(item);
        } else {
            return Err(unknown(item, library).into());
        }
    }
    let mut set = match base {
        Some(set) => set,
        None => library.set("default").unwrap_or_default(),
    };
    for item in added {
        match Path::new(item).is_file() {
            true => add(&mut set, Path::new(item))?,
            false => set.extend(&named(item).unwrap_or_default()),
        }
    }
    set.retain(|r| !dropped.iter().any(|d| d.get(&r.name).is_some()));
    set.retain(|r| float.allows(r.law));
    Ok(set)
}

/// Returns only the rules of the named files, folders, shipped sets, themes and rules, without the default set. Of a
/// folder, returns all rules, including those of named sets.
///
/// # Errors
/// As [`rule_set`].
pub fn rules_in<P: AsRef<Path>>(specs: &[P]) -> Result<RuleSet> {
    let library = Library::shipped()?;
    let mut set = RuleSet::default();
    for item in specs.iter().flat_map(|s| items(s.as_ref())) {
        let path = Path::new(&item);
        if path.is_dir() {
            set.extend(&folder(path)?);
        } else if path.is_file() {
            add(&mut set, path)?;
        } else {
            let named = library.set(&item).or_else(|| library.theme(&item));
            let named = named.or_else(|| library.named(&item));
            set.extend(&named.ok_or_else(|| unknown(&item, library))?);
        }
    }
    Ok(set)
}

/// Returns the rules of a set that differ from the shipped ones. The shipped rules are covered by patsat's own tests.
pub(super) fn own_rules(set: &RuleSet) -> Result<Vec<&Rule>> {
    let shipped = Library::shipped()?.all();
    let known = |r: &Rule| {
        let parts = |r: &Rule| {
            let sides = (r.lhs.clone(), r.rhs.clone(), r.lets.clone(), r.when.clone());
            (sides, r.law, r.derivation.clone())
        };
        shipped.get(&r.name).is_some_and(|s| parts(s) == parts(r))
    };
    Ok(set.iter().filter(|r| !known(r)).collect())
}

/// Tests the rules of a set that are not shipped: each must be an equality, and its derivation must hold.
///
/// # Errors
/// [`Code::RuleUnsound`] with a counterexample for each rule that is not an equality, [`Code::RuleUntested`] for a
/// rule without instances, [`Code::StepFails`] for a derivation that does not hold.
pub fn check_own_rules(set: &RuleSet, how: Check) -> Result<()> {
    let own = own_rules(set)?;
    let mut all = Library::shipped()?.all();
    all.extend(set);
    let mut wrong: Vec<Diagnostic> = vec![];
    check::check_all(&own, &all, how, |_, tested| {
        wrong.extend(tested.wrong.map(|d| d.help("`--trust-rules` uses rules untested")));
        Ok::<_, Failure>(())
    })?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

/// Returns warnings about `rules`, to be used as part of `set`: see [`lint::lint`].
pub fn lint_rules(rules: &RuleSet, set: &RuleSet) -> Vec<Diagnostic> {
    let (rules, all): (Vec<&Rule>, Vec<&Rule>) = (rules.iter().collect(), set.iter().collect());
    lint::lint(&rules, &all, &alone)
}

/// Saturates a term with one rule alone. A rule that bounds its own depth saturates in a few rounds.
fn alone(rule: &Rule, term: &Term) -> Result<Trial> {
    let limits =
        Limits { iterations: 16, nodes: 4_000, saturation_time: None, ..Limits::default() };
    let only = RuleSet::from_iter([rule.clone()]);
    let report = saturate::saturate(std::slice::from_ref(term), &only, &limits)?.report;
    Ok(Trial {
        applied: report.rules.get(&rule.name).is_some_and(|s| s.applied > 0),
        grows: report.stop_reason != StopReason::Saturated,
        rounds: report.iterations.len(),
        nodes: report.nodes,
    })
}

/// Returns the items of a specification. A path that exists is a single item, even if it contains commas.
fn items(spec: &Path) -> Vec<String> {
    let text = spec.to_string_lossy().into_owned();
    if spec.exists() {
        return vec![text];
    }
    text.split(',').map(|item| item.trim().to_owned()).collect()
}

fn unknown(item: &str, library: &Library) -> Diagnostic {
    let looks_like_a_file = item.contains(['/', '.']);
    let code = if looks_like_a_file { Code::Io } else { Code::UnknownName };
    let text = format!("`{item}` is not a file, a folder, or a shipped set, theme or rule");
    Diagnostic::error(code, text)
        .help(format!("sets are {}", library.sets().join(", ")))
        .help(format!("themes are {}", library.themes().collect::<Vec<_>>().join(", ")))
}

/// Returns every rule of the files in a folder. Their names must be unique.
fn folder(path: &Path) -> Result<RuleSet> {
    let listing = fs::read_dir(path).map_err(|e| unreadable(path, &e))?;
    let mut files: Vec<PathBuf> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "rules"))
        .collect();
    files.sort();
    if files.is_empty() {
        let message = format!("{} has no `*.rules` files", path.display());
        return Err(Diagnostic::error(Code::Io, message).into());
    }
    let mut all = RuleSet::default();
    for file in &files {
        let mut own = RuleSet::default();
        add(&mut own, file)?;
        if let Some((twin, first)) = own.iter().find_map(|r| Some((r, all.get(&r.name)?))) {
            let text = format!("two rules of {} are named `{}`", path.display(), twin.name);
            return Err(Diagnostic::error(Code::RuleParse, text)
                .at(&twin.source, twin.span, "the second")
                .note(format!("the first is in {}", first.source.name))
                .help("rename one: the second would replace the first")
                .into());
        }
        all.extend(&own);
    }
    Ok(all)
}

fn unreadable(path: &Path, e: &io::Error) -> Diagnostic {
    Diagnostic::error(Code::Io, format!("{} cannot be read: {e}", path.display()))
}

/// Returns the rule with this name.
///
/// # Errors
/// [`Code::UnknownName`], with similar names.
pub fn find_rule<'a>(set: &'a RuleSet, name: &str) -> Result<&'a Rule> {
    set.get(name).ok_or_else(|| {
        let mut near: Vec<&str> = set
            .iter()
            .map(|r| r.name.as_str())
            .filter(|n| n.contains(name) || name.contains(n) || distance(n, name) <= 3)
            .collect();
        near.sort_by_key(|n| distance(n, name));
        let d = Diagnostic::error(Code::UnknownName, format!("no rule is named `{name}`"));
        let help = match near.as_slice() {
            [] => "`patsat rules list` lists them".to_owned(),
            near => format!("there are {}", near.join(", ")),
        };
        d.help(help).into()
    })
}

fn add(set: &mut RuleSet, path: &Path) -> Result<()> {
    let theme = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    set.add(&read(path)?, &theme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(specs: &[&str]) -> RuleSet {
        rule_set(specs, Float::Relaxed).expect("the rules are well-formed")
    }

    #[test]
    fn names_that_are_near() {
        let set = rule_set::<&str>(&[], Float::Relaxed).expect("the rules are well-formed");
        assert_eq!(
            find_rule(&set, "map-fusion").expect("the rule is in the set").name,
            "map-fusion"
        );
        let help = |name| find_rule(&set, name).unwrap_err().0[0].help.join("");
        assert!(help("map-fusoin").starts_with("there are map-fusion"), "{}", help("map-fusoin"));
        assert!(help("nonsense").contains("rules list"));
    }

    #[test]
    fn folders_replace_and_files_extend() {
        let shipped = set(&[]);
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let empty = rule_set(&[folder.path()], Float::Exact).unwrap_err();
        assert_eq!(empty.0[0].code, Code::Io);
        let file = folder.path().join("simplify.rules");
        fs::write(&file, include_str!("../../rules/simplify.rules")).expect("it can be written");
        let one = rule_set(&[folder.path()], Float::Relaxed).expect("the rules are well-formed");
        assert!(one.len() < shipped.len() && !one.is_empty());
        let all = rule_set(&[&file], Float::Relaxed).expect("the rules are well-formed");
        assert_eq!(all.len(), shipped.len());
        // Rules of named sets are read, but not used. Names must be unique.
        let named = folder.path().join("named.rules");
        let text = include_str!("../../rules/warp.rules");
        fs::write(&named, text).expect("it can be written");
        assert_eq!(
            rule_set(&[folder.path()], Float::Relaxed).expect("the rules are well-formed").len(),
            one.len()
        );
        assert_eq!(
            rules_in(&[folder.path()]).expect("the rules are well-formed").len(),
            one.len() + 2
        );
        fs::write(&named, text.replace("lower-map-warp", "map-identity"))
            .expect("it can be written");
        let twice = rules_in(&[folder.path()]).unwrap_err();
        assert_eq!(twice.0[0].code, Code::RuleParse);
        let missing = rule_set(&["/no/such.rules"], Float::Exact).unwrap_err();
        assert_eq!(missing.0[0].code, Code::Io);
    }

    #[test]
    fn names_of_sets_themes_and_rules() {
        assert_eq!(set(&["default"]).hash(), set(&[]).hash());
        let without = set(&["-vectorise,-map-fusion"]);
        assert!(without.get("map-fusion").is_none() && without.get("vectorise-map").is_none());
        assert_eq!(set(&["vectorise,-vectorise"]).hash(), set(&["-vectorise"]).hash());
        let unknown = rule_set(&["default,nothing"], Float::Exact).unwrap_err();
        assert_eq!(unknown.0[0].code, Code::UnknownName);
    }
}
