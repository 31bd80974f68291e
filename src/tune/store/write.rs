//! Writes rows. Every function runs inside a transaction.

use super::record::{About, Answer, Key, Record, json, signed, text};
use super::{columns, find, now};
use rusqlite::{Connection, params};

fn stamp(when: u64) -> i64 {
    signed(if when == 0 { now() } else { when })
}

/// Returns the id of a key's row, which is inserted if there is none.
pub(super) fn run(write: &Connection, key: &Key) -> rusqlite::Result<i64> {
    write
        .prepare_cached(
            "INSERT OR IGNORE INTO runs (program, entry, sizes, rules, device, driver, tool, float,
                 trust) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(columns(key))?;
    find(write, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

pub(super) fn candidate(write: &Connection, run: i64, r: &Record) -> rusqlite::Result<()> {
    // `OR REPLACE` would give the row a new place in the order of measuring.
    write
        .prepare_cached(
            "INSERT INTO candidates (run, term, tunables, plan, source, outcome, log, build_ms, median_us,
                 spread_us, predicted_us, max_rel_err, recorded, compact, skeleton, bound, host,
                 inputs, limit_s, verified)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
             ON CONFLICT (run, plan) DO UPDATE SET term = excluded.term, tunables = excluded.tunables,
                 source = excluded.source, outcome = excluded.outcome, log = excluded.log,
                 build_ms = excluded.build_ms, median_us = excluded.median_us,
                 spread_us = excluded.spread_us, predicted_us = excluded.predicted_us,
                 max_rel_err = excluded.max_rel_err, recorded = excluded.recorded,
                 compact = excluded.compact, skeleton = excluded.skeleton, bound = excluded.bound,
                 host = excluded.host, inputs = excluded.inputs, limit_s = excluded.limit_s,
                 verified = excluded.verified",
        )?
        .execute(params![
            run,
            r.term,
            json(&r.tunables),
            r.plan,
            r.source,
            r.fate.name(),
            r.log,
            r.build_ms,
            r.median_us,
            r.spread_us,
            r.predicted_us,
            r.max_rel_err,
            stamp(r.when),
            r.compact,
            r.skeleton,
            r.bound,
            r.host.as_ref().map(text).transpose()?,
            r.inputs,
            r.limit_s,
            r.verified,
        ])?;
    Ok(())
}

/// Records that the kernels of a plan gave the right result on this device.
pub(super) fn verified(write: &Connection, run: i64, plan: &str) -> rusqlite::Result<()> {
    write.execute("INSERT OR IGNORE INTO checked VALUES (?1, ?2)", params![run, plan])?;
    write.execute(
        "UPDATE candidates SET verified = 1 WHERE run = ?1 AND plan = ?2 AND outcome IN ('timed', 'slow')",
        params![run, plan],
    )?;
    Ok(())
}

pub(super) fn about(write: &Connection, run: i64, about: &About) -> rusqlite::Result<()> {
    write.execute("UPDATE runs SET about = ?1 WHERE id = ?2", params![text(about)?, run])?;
    Ok(())
}

pub(super) fn answer(write: &Connection, run: i64, a: &Answer) -> rusqlite::Result<()> {
    write.execute(
        "INSERT OR REPLACE INTO answers (run, strategy, model, budget, ranking, summary, recorded)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            run,
            a.strategy,
            a.model,
            signed(a.budget),
            text(&a.ranking)?,
            text(&a.summary)?,
            stamp(a.when)
        ],
    )?;
    Ok(())
}
