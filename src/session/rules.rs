//! Reading text files, and the rule set a person asks for.

use crate::diag::{Code, Diagnostic, Result, Source};
use crate::rules::{Law, Library, RuleSet};
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
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| unreadable(path, &e))?;
        return Ok(Source::new("<standard input>", text));
    }
    let text = fs::read_to_string(path).map_err(|e| unreadable(path, &e))?;
    Ok(Source::new(path.display().to_string(), text))
}

/// The rules that `specs` ask for. Each is a list, separated by commas, of
///
/// - a shipped set (`default`, `thesis`, ...) or a folder of `*.rules` files: the rules start from these
///   instead of from the default set;
/// - a file, a shipped theme (`lowering`) or a shipped rule: these are added, a rule of a known name being
///   replaced;
/// - `-NAME`: the set, theme or rule is left out.
///
/// Rules that only hold approximately are left out of an exact set.
///
/// # Errors
/// When a name means nothing, a file cannot be read, or a rule does not parse or type-check.
pub fn rule_set<P: AsRef<Path>>(specs: &[P], float: Float) -> Result<RuleSet> {
    let library = Library::shipped()?;
    let named = |name: &str| {
        library.set(name).or_else(|| library.theme(name)).or_else(|| only(library.all(), name))
    };
    let items: Vec<String> = specs.iter().flat_map(|s| items(s.as_ref())).collect();
    // What a name means does not depend on where it stands: first what the set starts from, then
    // what is added, then what is left out.
    let mut base: Option<RuleSet> = None;
    let (mut added, mut dropped) = (vec![], vec![]);
    for item in &items {
        if Path::new(item).is_dir() {
            folder(base.get_or_insert_default(), Path::new(item))?;
        } else if Path::new(item).is_file() {
            added.push(item);
        } else if let Some(set) = library.set(item) {
            base.get_or_insert_default().extend(&set);
        } else if let Some(name) = item.strip_prefix('-') {
            dropped.push(named(name).ok_or_else(|| unknown(name, &library))?);
        } else if named(item).is_some() {
            added.push(item);
        } else {
            return Err(unknown(item, &library).into());
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
    if float == Float::Exact {
        set.retain(|r| match r.law {
            Law::Exact | Law::Reassoc => true,
            Law::Approx => false,
        });
    }
    Ok(set)
}

/// What a specification lists. A path that exists is one item, commas and all.
fn items(spec: &Path) -> Vec<String> {
    let text = spec.to_string_lossy().into_owned();
    if spec.exists() {
        return vec![text];
    }
    text.split(',').map(|item| item.trim().to_owned()).collect()
}

/// The rule of that name, or all that a `for` clause made of it.
fn only(mut all: RuleSet, name: &str) -> Option<RuleSet> {
    all.retain(|r| r.name == name || r.family == name);
    (!all.is_empty()).then_some(all)
}

fn unknown(item: &str, library: &Library) -> Diagnostic {
    let looks_like_a_file = item.contains(['/', '.']);
    let code = if looks_like_a_file { Code::Io } else { Code::UnknownName };
    let text = format!("`{item}` is no file, no folder, and no set, theme or rule that is shipped");
    Diagnostic::error(code, text)
        .help(format!("sets are {}", library.sets().join(", ")))
        .help(format!("themes are {}", library.themes().collect::<Vec<_>>().join(", ")))
}

fn folder(set: &mut RuleSet, path: &Path) -> Result<()> {
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
    files.iter().try_for_each(|file| add(set, file))
}

fn unreadable(path: &Path, e: &std::io::Error) -> Diagnostic {
    Diagnostic::error(Code::Io, format!("{} cannot be read: {e}", path.display()))
}

fn add(set: &mut RuleSet, path: &Path) -> Result<()> {
    let theme = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    set.add(&read(path)?, &theme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(specs: &[&str]) -> RuleSet {
        rule_set(specs, Float::Relaxed).unwrap()
    }

    #[test]
    fn folders_replace_and_files_extend() {
        let shipped = set(&[]);
        let folder = tempfile::TempDir::new().unwrap();
        let empty = rule_set(&[folder.path()], Float::Exact).unwrap_err();
        assert_eq!(empty.0[0].code, Code::Io);
        let file = folder.path().join("simplify.rules");
        fs::write(&file, include_str!("../../rules/simplify.rules")).unwrap();
        let one = rule_set(&[folder.path()], Float::Relaxed).unwrap();
        assert!(one.len() < shipped.len() && !one.is_empty());
        let all = rule_set(&[&file], Float::Relaxed).unwrap();
        assert_eq!(all.len(), shipped.len());
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
