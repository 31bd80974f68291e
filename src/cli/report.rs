//! The report of `optimize`, as text and as JSON, and formatting that other verbs share.

use super::out::{Done, Out};
use super::progress::{failures, micros};
use crate::extract::Lost;
use crate::session::{Best, Optimized};
use crate::tune::variant::Variant;
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Returns the bandwidth in GB/s for a number of bytes and a time in microseconds.
pub fn gb_per_s(bytes: u64, us: f64) -> f64 {
    bytes as f64 * 1e-3 / us.max(1e-3)
}

/// Returns the rate in GFLOP/s for a number of operations and a time in microseconds.
pub fn gflops(flops: f64, us: f64) -> f64 {
    flops * 1e-3 / us.max(1e-3)
}

/// Returns sizes as text, such as `n=16 m=4`.
pub fn sizes<'a>(sizes: impl IntoIterator<Item = (&'a String, &'a u64)>) -> String {
    let parts: Vec<String> = sizes.into_iter().map(|(n, v)| format!("{n}={v}")).collect();
    parts.join(" ")
}

fn tunables(v: &Variant) -> String {
    let parts: Vec<String> = v.tunables().iter().map(|(n, v)| format!("{n}={v}")).collect();
    parts.join(" ")
}

/// Indents every line.
fn indented(text: &str) -> String {
    text.trim_end()
        .lines()
        .map(|l| if l.is_empty() { "\n".into() } else { format!("  {l}\n") })
        .collect()
}

/// Prints a line of a report: what it says, and the value.
pub fn line(what: &str, text: &str, out: &mut Out) -> Done {
    out.line(&format!("{what:<10} {text}"))
}

/// Prints the report of `optimize`: the result, and with `verbose` also how it came about.
pub fn optimized(o: &Optimized, (verbose, top): (bool, usize), out: &mut Out) -> Done {
    let v = &o.best.variant;
    out.line(&format!("{} {} on {}", o.entry, sizes(&o.sizes), o.device.short()))?;
    match &o.best.summary {
        Some(s) => measured(o, s.median_us, out)?,
        None => {
            let text = format!(
                "{}, predicted, bound by {}; nothing is measured",
                micros(v.predicted_us),
                v.bound
            );
            line("time", &text, out)?;
            line("rate", &rate(o, v.predicted_us), out)?;
        }
    }
    searched(o, out)?;
    if verbose {
        details(o, out)?;
    }
    if top > 1 {
        out.line(&format!("\n{}\n", ranking(&o.ranking, top)))?;
    }
    Ok(())
}

/// Prints the best term, its kernels, and what the search did.
fn details(o: &Optimized, out: &mut Out) -> Done {
    let v = &o.best.variant;
    out.line("")?;
    line("file", &o.file, out)?;
    line("device", &format!("{}, driver {}", o.device.label(), none(&o.device.driver)), out)?;
    line("cost model", &format!("{}: {}", o.model.model.name, o.model.why), out)?;
    line("rules", &format!("{}, float {}", o.rules, o.float.name()), out)?;
    let text = format!(
        "{} nodes in {} classes after {} iterations, {} in {:.0} ms",
        o.report.nodes,
        o.report.classes,
        o.report.iterations.len(),
        o.report.stop_reason,
        o.timings.saturate_ms
    );
    line("e-graph", &text, out)?;
    out.line("\nprogram")?;
    out.text(&indented(&o.forms[0].to_string()))?;
    out.line("\nbest term")?;
    out.text(&indented(&v.term.to_string()))?;
    if !v.tunables().is_empty() {
        out.line(&format!("  where {}", tunables(v)))?;
    }
    out.line(&format!("\nkernel{}", if v.plan.launches.len() == 1 { "" } else { "s" }))?;
    out.text(&indented(&v.plan.source))?;
    out.text(&launches(&o.best))?;
    out.line("")?;
    candidates(o, out)
}

/// Prints what was searched, and how long that took.
fn searched(o: &Optimized, out: &mut Out) -> Done {
    let c = &o.counts;
    let mut text = format!("{} candidates, {} kernels", c.generated, c.lowered);
    if c.timed > 0 {
        text.push_str(&format!(", {} measured", c.timed));
    }
    if let Some(failures) = failures(c) {
        text.push_str(&format!(", failed: {failures}"));
    }
    text.push_str(&format!(", in {:.1} s", o.timings.total_ms / 1e3));
    if let Some(s) = &o.stored {
        text.push_str(&format!(
            ", on {}; found in the tuning store in {:.0} ms",
            date(s.when),
            s.ms
        ));
    }
    line("searched", &text, out)
}

/// Formats a time in seconds since 1970 as `2026-11-21 16:05 UTC`.
pub fn date(when: u64) -> String {
    let (days, rest) = (when / 86_400, when % 86_400);
    // Counts years from March, so that a leap day is the last day of its year, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3_600, rest / 60 % 60)
}

fn none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// Returns a line for each launch, with the time of its kernel where there are several.
fn launches(best: &Best) -> String {
    let dims = |n: [usize; 3]| {
        let used = n.iter().rposition(|&d| d > 1).map_or(1, |i| i + 1);
        n[..used].iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")
    };
    let launches = &best.variant.plan.launches;
    let lines = launches.iter().enumerate().map(|(i, l)| {
        let mut line =
            format!("  {}: {} work-items in groups of {}", l.kernel, dims(l.global), dims(l.local));
        let predicted = best.variant.kernels.get(i).map(|k| ("predicted", k.us));
        let measured = best.kernels_us.get(i).map(|us| ("measured", *us));
        for (what, us) in predicted.into_iter().chain(measured).filter(|_| launches.len() > 1) {
            let _ = write!(line, ", {what} {}", micros(us));
        }
        line + "\n"
    });
    lines.collect()
}

/// Returns the rates of data and of operations at a time in microseconds.
fn rate(o: &Optimized, us: f64) -> String {
    let mut text = format!("{:.2} GB/s", gb_per_s(o.work.bytes, us));
    if o.work.flops > 0.0 {
        text.push_str(&format!(", {:.2} GFLOP/s", gflops(o.work.flops, us)));
    }
    text
}

/// Prints the time of the best candidate, its rate, and its error.
fn measured(o: &Optimized, us: f64, out: &mut Out) -> Done {
    let v = &o.best.variant;
    let spread = o.best.summary.map_or(0.0, |s| s.spread_us);
    let text = format!(
        "{} (spread {}), predicted {}, bound by {}",
        micros(us),
        micros(spread),
        micros(v.predicted_us),
        v.bound
    );
    line("time", &text, out)?;
    let mut rates = rate(o, us);
    if let Some(s) = &o.shares {
        let own = gb_per_s(o.work.bytes, s.median_us);
        for (what, limit) in [("copy", s.copy_gb_per_s), ("read", s.read_gb_per_s)] {
            if let Some(limit) = limit {
                rates.push_str(&format!(", {:.0}% of {what} bandwidth", 100.0 * own / limit));
            }
        }
    }
    line("rate", &rates, out)?;
    let mut error = format!("{:.2e} at most, relative", o.best.max_rel_err.unwrap_or(0.0));
    if let Some(checked) = &o.checked {
        error.push_str(&format!("; checked: {checked}"));
    }
    line("error", &error, out)
}

fn candidates(o: &Optimized, out: &mut Out) -> Done {
    let c = &o.counts;
    let mut text = format!("{} in {} skeletons", c.generated, c.skeletons);
    if c.built + c.failed.len() > 0 {
        text.push_str(&format!(", {} built, {} timed, {} slow", c.built, c.timed, c.slow));
        if c.cached > 0 {
            text.push_str(&format!(", {} loads of kernels built before", c.cached));
        }
    }
    if c.resumed > 0 {
        text.push_str(&format!(", {} from the tuning store", c.resumed));
    }
    line("candidates", &text, out)?;
    if o.ties > 1 {
        line("", &format!("the first {} cannot be told apart", o.ties), out)?;
    }
    for (reason, count) in c.dropped.get(Lost::Term.text()).into_iter().flatten() {
        out.line(&format!("           {count} of {} terms dropped: {reason}", c.terms))?;
    }
    if c.unranked > 0 {
        out.line(&format!(
            "           {} not ranked: only the additive estimate judged them",
            c.unranked
        ))?;
    }
    if c.duplicates > 0 {
        out.line(&format!("           {} had the same kernels as another", c.duplicates))?;
    }
    for (reason, count) in &c.rejected {
        out.line(&format!("           {count} without kernels: {reason}"))?;
    }
    let t = &o.timings;
    if let Some(s) = &o.shares {
        let limits = [("copy", s.copy_gb_per_s), ("read", s.read_gb_per_s)];
        let limits =
            limits.iter().filter_map(|(what, limit)| Some(format!("{what} {:.2} GB/s", (*limit)?)));
        line("bandwidth", &limits.collect::<Vec<_>>().join(", "), out)?;
    }
    let named =
        [t.saturate_ms, t.extract_ms, t.generate_ms, t.compile_ms, t.measure_ms, t.compare_ms];
    out.line(&format!(
        "phases     {:.2} s: saturating {:.2}, extracting {:.2}, generating {:.2}, compiling {:.2}, checking and timing {:.2}, \
         comparing with the bandwidth {:.2}, other {:.2}",
        t.total_ms / 1e3,
        t.saturate_ms / 1e3,
        t.extract_ms / 1e3,
        t.generate_ms / 1e3,
        t.compile_ms / 1e3,
        t.measure_ms / 1e3,
        t.compare_ms / 1e3,
        // Phases on several threads overlap.
        (t.total_ms - named.iter().sum::<f64>()).max(0.0) / 1e3
    ))
}

fn ranking(ranking: &[Best], top: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "measured", "spread", "predicted", "where", "skeleton"]);
    for (i, b) in ranking.iter().take(top).enumerate() {
        let time = |f: fn(&crate::tune::statistics::Summary) -> f64| {
            b.summary.as_ref().map_or_else(|| "-".into(), |s| micros(f(s)))
        };
        table.add_row([
            (i + 1).to_string(),
            time(|s| s.median_us),
            time(|s| s.spread_us),
            micros(b.variant.predicted_us),
            tunables(&b.variant),
            b.variant.skeleton.clone(),
        ]);
    }
    table.to_string()
}

/// Returns the fields of the JSON line `result` of `optimize`.
pub fn result(o: &Optimized, top: usize) -> Value {
    let v = &o.best.variant;
    let s = o.best.summary.as_ref();
    let us = s.map(|s| s.median_us);
    let share = |limit: Option<f64>| {
        let shares = o.shares.as_ref()?;
        Some(gb_per_s(o.work.bytes, shares.median_us) / limit?)
    };
    let copy = o.shares.as_ref().and_then(|s| s.copy_gb_per_s);
    let read = o.shares.as_ref().and_then(|s| s.read_gb_per_s);
    let best: Vec<Value> = o
        .ranking
        .iter()
        .take(top)
        .map(|b| {
            json!({
                "term": b.variant.term.to_string(), "tunables": b.variant.tunables(),
                "skeleton": b.variant.skeleton, "predicted_us": b.variant.predicted_us,
                "median_us": b.summary.map(|s| s.median_us),
                "spread_us": b.summary.map(|s| s.spread_us), "plan": b.variant.hash,
            })
        })
        .collect();
    let mut result = json!({
        "program": o.file,
        "entry": o.entry,
        "sizes": o.sizes,
        "device": o.device.label(),
        "driver": o.device.driver,
        "cost_model": o.model.model.name,
        "rules": o.rules,
        "float": o.float.name(),
        "stop_reason": o.report.stop_reason,
        "egraph_nodes": o.report.nodes,
        "egraph_classes": o.report.classes,
        "iterations": o.report.iterations.len(),
        "candidates": o.counts,
        "median_us": us,
        "spread_us": s.map(|s| s.spread_us),
        "runs": s.map(|s| s.runs),
        "ties": o.ties,
        "predicted_us": v.predicted_us,
        "bound": v.bound,
        "bytes": o.work.bytes,
        "flops": o.work.flops,
        "gbytes_per_s": us.map(|us| gb_per_s(o.work.bytes, us)),
        "gflops": us.map(|us| gflops(o.work.flops, us)),
        "copy_gbytes_per_s": copy,
        "read_gbytes_per_s": read,
        "share_of_copy": share(copy),
        "share_of_read": share(read),
        "max_rel_err": o.best.max_rel_err,
        "high_level": o.forms[0].to_string(),
        "other_forms": o.forms[1..].iter().map(ToString::to_string).collect::<Vec<_>>(),
        "term": v.term.to_string(),
        "tunables": v.tunables(),
        "skeleton": v.skeleton,
        "kernels": v.plan.source,
        "launches": v.plan.launches,
        "kernels_predicted_us": v.kernels.iter().map(|k| k.us).collect::<Vec<_>>(),
        "kernels_us": o.best.kernels_us,
        "top": best,
        "interrupted": o.interrupted,
    });
    if let (Value::Object(all), Value::Object(timings)) = (&mut result, json!(o.timings)) {
        all.extend(timings);
    }
    result["checked"] = json!(o.checked);
    result["stored"] = json!(o.stored);
    result
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn moments_have_dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_767_225_599), "2025-12-31 23:59 UTC");
    }
}
