//! A whole store as one value, which is exported as JSON, imported and merged. `docs/store.md` describes the
//! layout.

use super::record::{About, Answer, Key, Record, answer, key, optional, record};
use super::{Store, explain, find, write};
use crate::diag::{Code, Diagnostic, Result, Source, Span};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Identifies the format of the file.
const FORMAT: &str = "patsat store";

/// Version of the file's layout.
const VERSION: u32 = 1;

/// Longest line that an error message shows, in bytes.
const SHOWN: usize = 4 << 10;

/// The contents of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dump {
    format: String,
    version: u32,
    /// One entry for each key, in the order in which they came into the store.
    pub runs: Vec<Run>,
}

/// What is stored under one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The key.
    pub key: Key,
    /// Description of the key's measurements.
    pub about: Option<About>,
    /// The candidates, in the order of measuring.
    pub candidates: Vec<Record>,
    /// The results of searches.
    pub answers: Vec<Answer>,
}

/// The effect of an import, in numbers of candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Absorbed {
    /// Candidates that the store did not have.
    pub added: usize,
    /// Candidates of which the store had an older measurement.
    pub replaced: usize,
    /// Candidates of which the store had this measurement or a newer one.
    pub kept: usize,
}

impl Dump {
    /// Returns a dump of these runs.
    pub fn new(runs: Vec<Run>) -> Dump {
        Dump { format: FORMAT.to_owned(), version: VERSION, runs }
    }

    /// Returns the dump as JSON.
    ///
    /// # Errors
    /// In practice never, since a dump is plain data.
    pub fn text(&self) -> Result<String> {
        let wrong = |e| Diagnostic::error(Code::Internal, format!("an export cannot be made: {e}"));
        Ok(serde_json::to_string_pretty(self).map_err(wrong)? + "\n")
    }

    /// Parses an export.
    ///
    /// # Errors
    /// [`Code::StoreImport`], with the place, when the text is not an export, has another version, or states
    /// something impossible.
    pub fn parse(source: &Arc<Source>) -> Result<Dump> {
        let wrong = |e: &serde_json::Error| {
            let text = e.to_string();
            let what = text.split(" at line ").next().unwrap_or_default().to_owned();
            let d = Diagnostic::error(Code::StoreImport, "the file is no export of a tuning store");
            let line = source.text.lines().nth(e.line().saturating_sub(1)).unwrap_or_default();
            // If the file has no line breaks, the line would be the whole file.
            let d = match line.len() > SHOWN {
                true => d.note(format!("{}: {text}", source.name)),
                false => d.at(source, place(&source.text, e.line(), e.column()), what),
            };
            d.help("`patsat store export` writes such files; `docs/store.md` has the layout")
        };
        // Check the format and version first: for another layout, the complete parse would only report unknown
        // fields.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = serde_json::from_str(&source.text).map_err(|e| wrong(&e))?;
        let refused = |what: String, help: &str| {
            let d = Diagnostic::error(Code::StoreImport, what).note(source.name.clone());
            d.help(help)
        };
        if head.format != FORMAT {
            let what = format!("the file is no export of a tuning store, but `{}`", head.format);
            return Err(refused(what, "`patsat store export` writes such files").into());
        }
        if head.version != VERSION {
            let what = format!(
                "the export has version {}; this patsat reads version {VERSION}",
                head.version
            );
            return Err(refused(what, "export it again with this version of patsat").into());
        }
        let dump: Dump = serde_json::from_str(&source.text).map_err(|e| wrong(&e))?;
        dump.check(&source.name)?;
        Ok(dump)
    }

    /// Checks that the contents are possible; `name` is the file's name in messages.
    ///
    /// # Errors
    /// [`Code::StoreImport`], with the place of what is impossible.
    pub fn check(&self, name: &str) -> Result<()> {
        for (i, run) in self.runs.iter().enumerate() {
            let Some((place, what)) = run.impossible() else { continue };
            let text = format!("the export is not valid: {what}");
            let at = format!("{name}: runs[{i}].{place}");
            return Err(Diagnostic::error(Code::StoreImport, text).note(at).into());
        }
        Ok(())
    }
}

impl Run {
    /// Returns the first impossible value, and why it is impossible.
    fn impossible(&self) -> Option<(String, &'static str)> {
        let Key { program, entry, rules, device, driver, tool, float, trust, sizes } = &self.key;
        let mut names = vec![program, entry, rules, device, driver, tool, float, trust];
        names.extend(sizes.keys());
        if names.iter().any(|name| name.contains(char::is_control)) {
            return Some(("key".to_owned(), "a name with control characters"));
        }
        let mut plans = std::collections::HashSet::new();
        let candidate = self.candidates.iter().enumerate().find_map(|(j, r)| {
            let ran = matches!(r.fate, super::Fate::Timed | super::Fate::Slow);
            let numbers =
                [r.build_ms, r.median_us, r.spread_us, r.predicted_us, r.max_rel_err, r.limit_s];
            let why = match r.median_us {
                _ if numbers.into_iter().flatten().any(|n| n.is_nan() || n < 0.0) => {
                    "a number below zero"
                }
                None if ran => "a candidate that ran, without a time",
                _ if !plans.insert(&r.plan) => "one plan twice under a key",
                _ => return None,
            };
            Some((format!("candidates[{j}]"), why))
        });
        candidate.or_else(|| {
            let wrong = |r: &super::Ranked| {
                let t = r.times;
                [t.median_us, t.spread_us, t.min_us, r.max_rel_err]
                    .iter()
                    .any(|n| n.is_nan() || *n < 0.0)
            };
            let j = self.answers.iter().position(|a| a.ranking.iter().any(wrong))?;
            Some((format!("answers[{j}]"), "a number below zero"))
        })
    }
}

/// Returns the span of a line and a column, both from 1. Columns count bytes.
fn place(text: &str, line: usize, column: usize) -> Span {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut at = (before + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    Span::new(at, at)
}

impl Store {
    /// Returns the contents of the store, with every candidate marked as unverified.
    pub fn dump(&self) -> Result<Dump> {
        let raw = || -> rusqlite::Result<Dump> {
            // A transaction gives a consistent state even if other processes write meanwhile.
            let read = self.connection.unchecked_transaction()?;
            let mut runs = vec![];
            let mut query = read.prepare("SELECT * FROM runs ORDER BY id")?;
            let keys = query.query_map([], |row| {
                Ok((row.get::<_, i64>("id")?, key(row)?, optional(row, "about")?))
            })?;
            for found in keys {
                let (id, key, about) = found?;
                let mut candidates =
                    read.prepare_cached("SELECT * FROM candidates WHERE run = ?1 ORDER BY id")?;
                let mut answers = read.prepare_cached(
                    "SELECT * FROM answers WHERE run = ?1 ORDER BY strategy, model",
                )?;
                runs.push(Run {
                    key,
                    about,
                    candidates: candidates
                        .query_map([id], |row| Ok(Record { verified: false, ..record(row)? }))?
                        .collect::<rusqlite::Result<_>>()?,
                    answers: answers.query_map([id], answer)?.collect::<rusqlite::Result<_>>()?,
                });
            }
            Ok(Dump::new(runs))
        };
        raw().map_err(|e| explain(&e, &self.path).into())
    }

    /// Merges another store's contents into this one, all or nothing. Of two measurements of one candidate, the
    /// newer is kept. Merged measurements are unverified.
    pub fn absorb(&mut self, dump: &Dump) -> Result<Absorbed> {
        self.thaw()?;
        self.writing(|write| {
            let mut out = Absorbed::default();
            for run in &dump.runs {
                absorb(write, run, &mut out)?;
            }
            Ok(out)
        })
    }
}

fn absorb(write: &Connection, run: &Run, out: &mut Absorbed) -> rusqlite::Result<()> {
    let known = find(write, &run.key)?;
    let id = write::run(write, &run.key)?;
    if let Some(about) = &run.about {
        let mut query = write.prepare_cached("SELECT about IS NOT NULL FROM runs WHERE id = ?1")?;
        // Both describe the same program, so an existing description stays.
        if known.is_none() || !query.query_row([id], |row| row.get::<_, bool>(0))? {
            write::about(write, id, about)?;
        }
    }
    for candidate in &run.candidates {
        let have: Option<i64> = write
            .prepare_cached("SELECT recorded FROM candidates WHERE run = ?1 AND plan = ?2")?
            .query_row(params![id, candidate.plan], |row| row.get(0))
            .optional()?;
        match have {
            None => out.added += 1,
            Some(when) if when < super::signed(candidate.when) => out.replaced += 1,
            Some(_) => {
                out.kept += 1;
                continue;
            }
        }
        write::candidate(write, id, &Record { verified: false, ..candidate.clone() })?;
    }
    for answer in &run.answers {
        let have: Option<i64> = write
            .prepare_cached(
                "SELECT recorded FROM answers WHERE run = ?1 AND strategy = ?2 AND model = ?3",
            )?
            .query_row(params![id, answer.strategy, answer.model], |row| row.get(0))
            .optional()?;
        if have.is_none_or(|when| when < super::signed(answer.when)) {
            write::answer(write, id, answer)?;
        }
    }
    Ok(())
}
