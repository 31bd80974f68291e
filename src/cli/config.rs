//! `patsat.toml`: defaults for options of the command line.
//!
//! The file in the current folder counts, or the nearest one in a folder above. Its values become the defaults of the options, so
//! the command line and the environment win over it.

use crate::diag::{Code, Diagnostic, Failure, Result, Source, Span};
use crate::lang::meant;
use crate::session::{Float, read};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use toml::{Spanned, Value};

/// The name of the file.
const FILE: &str = "patsat.toml";

/// The keys: the options without dashes.
const KEYS: [&str; 5] = ["device", "cost_model", "float", "budget", "store"];

/// The defaults of a file.
#[derive(Debug, Default, PartialEq)]
pub struct Config(BTreeMap<String, String>);

impl Config {
    /// Reads the file of the current folder or of the nearest folder above; without one, there are no defaults.
    ///
    /// # Errors
    /// When the file cannot be read, or has a key or a value that no option has.
    pub fn find() -> Result<Config> {
        let Ok(here) = std::env::current_dir() else { return Ok(Config::default()) };
        match here.ancestors().map(|folder| folder.join(FILE)).find(|path| path.is_file()) {
            Some(path) => Config::parse(&read(&path)?),
            None => Ok(Config::default()),
        }
    }

    fn parse(source: &Arc<Source>) -> Result<Config> {
        type Table = BTreeMap<Spanned<String>, Spanned<Value>>;
        let table: Table = toml::from_str(&source.text).map_err(|e| {
            let place = e.span().unwrap_or_default();
            wrong("the file is not TOML", source, place, e.message()).help(HELP)
        })?;
        let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
        let (mut values, mut failures) = (BTreeMap::new(), vec![]);
        for (key, value) in &table {
            let name = key.get_ref().as_str();
            if !KEYS.contains(&name) {
                let d = wrong(&format!("there is no key `{name}`"), source, key.span(), "");
                let d = meant(d, name, KEYS.into_iter());
                failures.push(d.help(format!("the keys are {}", KEYS.join(", "))));
                continue;
            }
            match text(name, value.get_ref(), folder) {
                Ok(text) => _ = values.insert(name.to_owned(), text),
                Err(expected) => {
                    let what = format!("`{name}` is not {expected}");
                    failures.push(wrong(&what, source, value.span(), "").help(HELP));
                }
            }
        }
        if failures.is_empty() { Ok(Config(values)) } else { Err(Failure(failures)) }
    }

    /// Makes the values the defaults of the options that may be given elsewhere than on the command line, too: those with a
    /// variable of the environment.
    pub fn apply(&self, command: clap::Command) -> clap::Command {
        // The library reads this variable, and not clap.
        let store_is_set = std::env::var_os("PATSAT_STORE").is_some_and(|v| !v.is_empty());
        let takes = |arg: &clap::Arg| match arg.get_id().as_str() {
            "store" => !store_is_set,
            _ => arg.get_env().is_some(),
        };
        command.mut_subcommands(|verb| {
            self.apply(verb).mut_args(|arg| match self.0.get(arg.get_id().as_str()) {
                Some(value) if takes(&arg) => arg.default_value(value.clone()),
                _ => arg,
            })
        })
    }
}

/// Advice for a file that is wrong.
const HELP: &str = "README.md says what the file may hold";

fn wrong(
    what: &str,
    source: &Arc<Source>,
    place: std::ops::Range<usize>,
    label: &str,
) -> Diagnostic {
    Diagnostic::error(Code::BadConfig, what).at(source, Span::new(place.start, place.end), label)
}

/// Returns a value as it would stand on the command line, or else what it should be. Paths are relative to `folder`.
fn text(key: &str, value: &Value, folder: &Path) -> std::result::Result<String, &'static str> {
    let beside = |name: &str| folder.join(name).display().to_string();
    match (key, value) {
        ("budget", Value::Integer(n)) if *n >= 0 => Ok(n.to_string()),
        ("budget", _) => Err("a number of candidates, such as `40`"),
        ("float", Value::String(mode)) if Float::from_name(mode).is_some() => Ok(mode.clone()),
        ("float", _) => Err("`\"exact\"`, `\"contract\"` or `\"relaxed\"`"),
        (_, Value::String(text)) if !text.is_empty() => Ok(match key {
            "store" => beside(text),
            // The name of a shipped model is no path.
            "cost_model" if folder.join(text).is_file() => beside(text),
            _ => text.clone(),
        }),
        _ => Err("a text in quotes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config> {
        Config::parse(&Source::new("/project/patsat.toml", text))
    }

    #[test]
    fn values_are_those_of_the_command_line() {
        let text = "device = \"#0\"\ncost_model = \"generic-gpu\"\nfloat = \"exact\"\nbudget = 7\nstore = \"s.sqlite\"\n";
        let Config(values) = parse(text).expect("a configuration");
        let values: Vec<_> = values.into_iter().collect();
        let expected = [
            ("budget", "7"),
            ("cost_model", "generic-gpu"),
            ("device", "#0"),
            ("float", "exact"),
            ("store", "/project/s.sqlite"),
        ];
        assert_eq!(values, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, what, help) in [
            ("devcie = \"none\"", "no key `devcie`", "did you mean `device`?"),
            ("budget = \"many\"", "`budget` is not a number", HELP),
            ("budget = -1", "`budget` is not a number", HELP),
            ("float = \"fast\"", "`float` is not", HELP),
            ("store = 3", "`store` is not a text", HELP),
            ("device = ", "not TOML", HELP),
        ] {
            let Failure(found) = parse(text).expect_err(text);
            assert_eq!((found.len(), found[0].code), (1, Code::BadConfig), "{text}");
            assert!(found[0].message.contains(what), "{text}: {}", found[0].message);
            assert!(found[0].help.iter().any(|h| h == help), "{text}: {:?}", found[0].help);
            assert!(!found[0].labels.is_empty(), "{text}");
        }
    }

    #[test]
    fn options_of_the_environment_have_defaults() {
        let config = parse("device = \"none\"\nbudget = 3\n").expect("a configuration");
        let command = config.apply(crate::cli::command());
        let verb = |name: &str| command.find_subcommand(name).expect("a verb").clone();
        let default = |verb: &clap::Command, id: &str| {
            let arg = verb.get_arguments().find(|a| a.get_id() == id).expect("an option");
            arg.get_default_values().first().map(|v| v.to_string_lossy().into_owned())
        };
        assert_eq!(default(&verb("optimize"), "device").as_deref(), Some("none"));
        assert_eq!(default(&verb("optimize"), "budget").as_deref(), Some("3"));
        assert_eq!(default(&verb("calibrate"), "device"), None);
    }
}
