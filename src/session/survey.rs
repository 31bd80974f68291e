//! Reads a whole tuning store for a report: candidates, results, and the derivation of each best term.

use super::program::{Program, Sizes};
use super::rules::rule_set;
use super::{Float, recall};
use crate::diag::{Code, Diagnostic, Failure, Limits, Result, Source};
use crate::extract::assigned;
use crate::saturate::explain::{Derivation, Explainer};
use crate::tune::event::{Event, Observer, Phase};
use crate::tune::store::{About, Fate, Key, Record, Store};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The stored data about a program at one size on one device.
pub struct Subject {
    /// The key in the store.
    pub key: Key,
    /// The description of the program; a store of an older version has none.
    pub about: Option<About>,
    /// Every candidate, in the order of measuring.
    pub history: Vec<Record>,
    /// The candidate that [`super::Session::optimize`] reports as the best: the first of the newest answer, else the
    /// best measured one.
    pub best: Option<Record>,
    /// The end of each search in seconds since 1970, and its budget.
    pub searches: Vec<(u64, u64)>,
    /// The derivation from the program to the best term, or the reason why there is none.
    pub derivation: std::result::Result<Derivation, String>,
}

impl Subject {
    /// Returns the value of each size.
    pub fn sizes(&self) -> Sizes {
        self.key.sizes.iter().map(|(n, v)| (n.clone(), *v)).collect()
    }

    /// Returns the candidates that were timed, or dropped as slow, with their median times in microseconds.
    pub fn timed(&self) -> impl Iterator<Item = (&Record, f64)> {
        let ran = |r: &&Record| matches!(r.fate, Fate::Timed | Fate::Slow);
        self.history.iter().filter(ran).filter_map(|r| Some((r, r.median_us?)))
    }

    /// Returns the number of failures and the first log, by class.
    pub fn failures(&self) -> BTreeMap<&'static str, (usize, Option<&str>)> {
        let mut out = BTreeMap::new();
        for r in &self.history {
            if let Fate::Failed(class) = r.fate {
                let (count, log) = out.entry(class.name()).or_insert((0, None));
                *count += 1;
                *log = log.or(r.log.as_deref());
            }
        }
        out
    }
}

/// Selects programs and the level of detail.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The entries to include; all if empty.
    pub entries: Vec<String>,
    /// The rules for derivations, as for [`rule_set`].
    pub rules: Vec<PathBuf>,
    /// Whether to make derivations, which saturates every program again.
    pub derivations: bool,
}

/// Returns the subjects of a store, ordered by program, device and sizes.
///
/// # Errors
/// When the store cannot be read, or a rule file is wrong. A failed derivation is not an error.
pub fn survey(store: &Store, wanted: &Wanted, observer: &mut dyn Observer) -> Result<Vec<Subject>> {
    let mut out = vec![];
    let mut entries = store.list()?;
    entries.retain(|e| wanted.entries.is_empty() || wanted.entries.contains(&e.key.entry));
    entries.sort_by(|a, b| {
        let key = |k: &Key| (k.entry.clone(), k.program.clone(), k.device.clone());
        let sizes = |k: &Key| (k.sizes.values().copied().collect::<Vec<_>>(), k.clone());
        key(&a.key).cmp(&key(&b.key)).then_with(|| sizes(&a.key).cmp(&sizes(&b.key)))
    });
    let mut why = Why { wanted, last: None };
    if wanted.derivations {
        observer.event(&Event::Phase(Phase::Explain));
    }
    for entry in entries {
        let key = entry.key;
        let about = store.about(&key)?;
        let history = store.history(&key)?;
        let answers = store.answers(&key)?;
        let named = answers.first().and_then(|a| a.ranking.first()).map(|first| &first.plan);
        let best = match named.and_then(|plan| history.iter().find(|r| r.plan == *plan)) {
            Some(best) => Some(best.clone()),
            None => store.best(&key)?,
        };
        let derivation = match (&about, &best) {
            _ if !wanted.derivations => Err("was not asked for".to_owned()),
            _ if observer.stop() => Err("was interrupted".to_owned()),
            (None, _) => Err("an older version of patsat did not keep the program".to_owned()),
            (_, None) => Err("no candidate was measured".to_owned()),
            (Some(about), Some(best)) => why.derive(&key, about, best)?,
        };
        let searches = answers.iter().map(|a| (a.when, a.budget)).collect();
        out.push(Subject { key, about, history, best, searches, derivation });
    }
    Ok(out)
}

/// Makes derivations. Sizes of one program that give the same term share the graph.
struct Why<'a> {
    wanted: &'a Wanted,
    last: Option<(String, Explainer)>,
}

impl Why<'_> {
    fn derive(
        &mut self,
        key: &Key,
        about: &About,
        best: &Record,
    ) -> Result<std::result::Result<Derivation, String>> {
        let rules = rule_set(&self.wanted.rules, Float::named(&key.float))?;
        if rules.hash() != key.rules {
            return Ok(Err("it was found under other rules".to_owned()));
        }
        match self.made(key, about, best, &rules) {
            Ok(derivation) => Ok(Ok(derivation)),
            // The store is of another version of patsat, or the graph is not saturated.
            Err(Failure(ds)) => {
                let first = ds.into_iter().next().map(|d| d.message);
                Ok(Err(first.unwrap_or_else(|| "it could not be derived".to_owned())))
            }
        }
    }

    fn made(
        &mut self,
        key: &Key,
        about: &About,
        best: &Record,
        rules: &crate::rules::RuleSet,
    ) -> Result<Derivation> {
        let source = Source::new(about.file.clone(), about.text.clone());
        let program = Program::check(&source, Some(&key.entry))?.under(rules)?;
        let sizes = key.sizes.iter().map(|(n, v)| (n.clone(), *v)).collect();
        let elaborated = program.elaborate(&sizes)?;
        let read = |text: &str| recall::term(text, &elaborated);
        let compact = best.compact.as_deref().and_then(read);
        let term = read(&best.term);
        let env = term.as_ref().and_then(|term| assigned(term, &elaborated.env, &best.tunables));
        let (Some(compact), Some(term), Some(env)) = (compact, term, env) else {
            let text = "this version of patsat does not read the term";
            return Err(Diagnostic::error(Code::NotDerived, text).into());
        };
        let names: Vec<&str> = about.capabilities.iter().map(String::as_str).collect();
        let offered = rules.offered(&names);
        let graph = format!("{} {} {}", elaborated.term, key.rules, names.join(","));
        let explainer = match &mut self.last {
            Some((of, explainer)) if *of == graph => explainer,
            other => {
                let made = Explainer::new(
                    &Float::named(&key.float).forms(&elaborated),
                    &offered,
                    &Limits::default(),
                )?;
                &mut other.insert((graph, made)).1
            }
        };
        explainer.derive_candidate(&compact, &term, &env)
    }
}
