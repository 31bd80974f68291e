//! Reading text files, and the rule set a person asks for.

use crate::diag::{Code, Diagnostic, Result, Source};
use crate::lang::distance;
use crate::rules::{Law, Rule, RuleSet};
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
    let unreadable = |path: &Path, e: std::io::Error| {
        Diagnostic::error(Code::Io, format!("{} cannot be read: {e}", path.display()))
    };
    let mut set = RuleSet::shipped()?;
    for path in paths.iter().filter(|p| p.is_dir()) {
        set = RuleSet::default();
        let listing = fs::read_dir(path).map_err(|e| unreadable(path, e))?;
        let mut files: Vec<PathBuf> = listing
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|p| p.extension().is_some_and(|e| e == "rules"))
            .collect();
        files.sort();
        if files.is_empty() {
            let message = format!("{} has no `*.rules` files", path.display());
            return Err(Diagnostic::error(Code::Io, message).into());
        }
        for file in files {
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

/// The rule of that name.
///
/// # Errors
/// [`Code::UnknownName`], with names that are near.
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

    #[test]
    fn names_that_are_near() {
        let set = rule_set(&[], Float::Relaxed).unwrap();
        assert_eq!(find_rule(&set, "map-fusion").unwrap().name, "map-fusion");
        let help = |name| find_rule(&set, name).unwrap_err().0[0].help.join("");
        assert!(help("map-fusoin").starts_with("there are map-fusion"), "{}", help("map-fusoin"));
        assert!(help("nonsense").contains("rules list"));
    }

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
