//! Renders the section of the page about one program at one size on one device.

use super::chart::{Axis, Chart};
use super::{escaped, size_list};
use crate::cli::html::steps;
use crate::cli::progress::micros;
use crate::cli::report::{date, gb_per_s, gflops};
use crate::session::survey::Subject;
use crate::tune::store::{About, Fate, Record};
use std::fmt::Write;

/// Formats a number with about three digits, in scientific notation if it is very small or large.
fn short(v: f64) -> String {
    match v {
        v if v == 0.0 || (1e-2..1e5).contains(&v.abs()) => {
            let digits = if v.abs() >= 100.0 { 0 } else { 2 };
            let text = format!("{v:.digits$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        v => format!("{v:.0e}"),
    }
}

/// Formats a time on an axis.
fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", short(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", short(us / 1e3)),
        us => format!("{} µs", short(us)),
    }
}

fn says(r: &Record, us: f64) -> String {
    let tunables: Vec<String> = r.tunables.iter().map(|(n, v)| format!("{n}={v}")).collect();
    let predicted =
        r.predicted_us.map_or_else(String::new, |p| format!(", predicted {}", micros(p)));
    let skeleton = r.skeleton.as_deref().unwrap_or("kernel");
    format!("{}{predicted}; {skeleton} {}", micros(us), tunables.join(" "))
}

fn class(r: &Record, best: &Record) -> &'static str {
    if r.plan == best.plan {
        "best"
    } else if r.fate == Fate::Slow {
        "slow"
    } else {
        "timed"
    }
}

/// Renders the section of a subject, with the given `id`.
pub fn section(id: &str, s: &Subject) -> String {
    let title = format!("{} {}", s.key.entry, size_list(s));
    let mut out = format!("<section id=\"{id}\">\n<h2>{}</h2>\n<dl>\n", escaped(&title));
    let mut row = |what: &str, text: &str| {
        let _ = writeln!(out, "<dt>{what}</dt><dd>{}</dd>", escaped(text));
    };
    if let Some(about) = &s.about {
        row("program", &about.file);
    }
    let driver = if s.key.driver.is_empty() { "none" } else { &s.key.driver };
    row("device", &format!("{}, driver {driver}", s.key.device));
    row("rules", &format!("{}, float {}, patsat {}", s.key.rules, s.key.float, s.key.tool));
    let timed = s.timed().count();
    let mut text = format!("{} measured, {timed} ran", s.history.len());
    for (when, budget) in &s.searches {
        let _ = write!(text, "; a search with {budget} ended on {}", date(*when));
    }
    row("candidates", &text);
    match (&s.best, s.best.as_ref().and_then(|b| b.median_us)) {
        (Some(best), Some(us)) => {
            row("best", &measured(best, us, s.about.as_ref()));
            if let (Some(p), bound) = (best.predicted_us, best.bound.as_deref()) {
                let bound = bound.map_or_else(String::new, |b| format!(", bound by {b}"));
                row("predicted", &format!("{}{bound}", micros(p)));
            }
            out.push_str("</dl>\n");
            out.push_str(&winner(best));
            out.push_str(&charts(s, best));
        }
        _ => {
            out.push_str("</dl>\n<p>No candidate ran.</p>\n");
        }
    }
    out.push_str(&failures(s));
    if let Some(best) = &s.best {
        let _ = writeln!(
            out,
            "<details>\n<summary>The kernels, in OpenCL C</summary>\n{}<pre><code>{}</code></pre>\n</details>",
            launches(best),
            escaped(best.source.trim_end())
        );
    }
    out.push_str(&derivation(id, s));
    if let Some(about) = &s.about {
        let text = escaped(about.text.trim_end());
        let _ = writeln!(
            out,
            "<details>\n<summary>The program</summary>\n<pre><code>{text}</code></pre>\n</details>"
        );
    }
    out.push_str("</section>\n");
    out
}

fn measured(best: &Record, us: f64, about: Option<&About>) -> String {
    let mut text = micros(us);
    if let Some(spread) = best.spread_us {
        let _ = write!(text, " (spread {})", micros(spread));
    }
    if let Some(a) = about {
        let rate = gb_per_s(a.bytes, us);
        let share = 100.0 * rate / a.gb_per_s;
        let _ = write!(
            text,
            ", {rate:.2} GB/s, {share:.0}% of the {} GB/s read bandwidth of the cost model {}",
            short(a.gb_per_s),
            a.cost_model
        );
        if a.flops > 0.0 {
            let _ = write!(text, ", {:.2} GFLOP/s", gflops(a.flops, us));
        }
    }
    if let Some(error) = best.max_rel_err {
        let _ = write!(text, ", largest relative error {error:.2e}");
    }
    text
}

fn winner(best: &Record) -> String {
    let mut out =
        format!("<h3>The best term</h3>\n<pre><code>{}</code></pre>\n", escaped(&best.term));
    let tunables: Vec<String> = best.tunables.iter().map(|(n, v)| format!("{n}={v}")).collect();
    if !tunables.is_empty() {
        let _ = writeln!(out, "<p>where <code>{}</code></p>", escaped(&tunables.join(" ")));
    }
    out
}

fn charts(s: &Subject, best: &Record) -> String {
    let mut out = "<div class=\"charts\">\n".to_owned();
    let mut figure = |svg: String, caption: &str| {
        let _ = writeln!(
            out,
            "<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>",
            escaped(caption)
        );
    };
    figure(scatter(s, best), "Predicted against measured. On the line the model is right.");
    figure(progress(s, best), "Times in the order of measuring, and the best so far.");
    if let Some((svg, caption)) = s.about.as_ref().and_then(|a| roofline(s, best, a)) {
        figure(svg, &caption);
    }
    out.push_str("</div>\n");
    out
}

fn scatter(s: &Subject, best: &Record) -> String {
    let points: Vec<(&Record, f64, f64)> =
        s.timed().filter_map(|(r, us)| Some((r, r.predicted_us?, us))).collect();
    // Both axes have the same range, so the candidates on the diagonal are predicted exactly.
    let both = || points.iter().flat_map(|(_, p, us)| [*p, *us]);
    let mut chart =
        Chart::new(Axis::log("predicted", both(), time), Axis::log("measured", both(), time));
    chart.diagonal();
    for (r, p, us) in &points {
        chart.dot(class(r, best), (*p, *us), &says(r, *us));
    }
    chart.svg(&format!("Predicted against measured times of {} candidates", points.len()))
}

fn progress(s: &Subject, best: &Record) -> String {
    let times = s.timed().map(|(_, us)| us);
    let mut chart = Chart::new(
        Axis::count("candidates measured", s.history.len()),
        Axis::log("time", times, time),
    );
    let mut steps: Vec<(f64, f64)> = vec![];
    let mut dots = vec![];
    let mut least = f64::INFINITY;
    for (i, r) in s.history.iter().enumerate() {
        let at = (i + 1) as f64;
        if let (Fate::Timed | Fate::Slow, Some(us)) = (r.fate, r.median_us) {
            dots.push((r, (at, us)));
            if r.fate == Fate::Timed && us < least {
                if least.is_finite() {
                    steps.push((at, least));
                }
                least = us;
                steps.push((at, us));
            }
        }
    }
    if least.is_finite() {
        steps.push((s.history.len() as f64, least));
    }
    chart.line("line", &steps);
    for (r, at) in dots {
        chart.dot(class(r, best), at, &says(r, at.1));
    }
    chart.svg("Times in the order of measuring, and the best so far")
}

/// Draws the roofline chart and its caption; `None` for programs without arithmetic on floats.
fn roofline(s: &Subject, best: &Record, a: &About) -> Option<(String, String)> {
    if a.flops <= 0.0 || a.bytes == 0 || a.gb_per_s <= 0.0 || a.gflops <= 0.0 {
        return None;
    }
    let intensity = a.flops / a.bytes as f64;
    let ridge = a.gflops / a.gb_per_s;
    let roof = |x: f64| (x * a.gb_per_s).min(a.gflops);
    let xs = [intensity.min(ridge) / 4.0, intensity.max(ridge) * 4.0];
    let rates = s.timed().map(|(_, us)| gflops(a.flops, us));
    let ys = rates.chain([a.gflops, roof(xs[0])]);
    let x = Axis::log("FLOP for each byte the program must move", xs.into_iter(), short);
    let mut chart = Chart::new(x, Axis::log("GFLOP/s", ys, short));
    let (low, high) = chart.span();
    chart.line("roof", &[(low, roof(low)), (ridge, roof(ridge)), (high, roof(high))]);
    for (r, us) in s.timed() {
        chart.dot(class(r, best), (intensity, gflops(a.flops, us)), &says(r, us));
    }
    let caption = format!(
        "Roofline: {} GB/s and {} GFLOP/s by the cost model {}. Dots above the slope read data from a cache.",
        short(a.gb_per_s),
        short(a.gflops),
        a.cost_model
    );
    Some((chart.svg("Roofline with every candidate"), caption))
}

fn failures(s: &Subject) -> String {
    let failed = s.failures();
    if failed.is_empty() {
        return "<p class=\"faint\">No candidate failed.</p>\n".to_owned();
    }
    let mut out = "<h3>Failures</h3>\n<ul>\n".to_owned();
    for (class, (count, log)) in failed {
        let _ = write!(out, "<li>{count} {class}");
        if let Some(log) = log.map(str::trim).filter(|l| !l.is_empty()) {
            let _ = write!(
                out,
                "<details>\n<summary>the log of the first</summary>\n<pre><code>{}</code></pre>\n</details>",
                escaped(log)
            );
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
    out
}

fn launches(best: &Record) -> String {
    let Some(host) = &best.host else { return String::new() };
    let rows = host.launches.iter().map(|l| {
        let dims = |n: [usize; 3]| n.map(|d| d.to_string()).join(" x ");
        let text =
            format!("{}: {} work-items in groups of {}", l.kernel, dims(l.global), dims(l.local));
        format!("<li>{}</li>\n", escaped(&text))
    });
    format!("<ul>\n{}</ul>\n", rows.collect::<String>())
}

fn derivation(id: &str, s: &Subject) -> String {
    match &s.derivation {
        Ok(d) => format!(
            "<details>\n<summary>The derivation, {} steps</summary>\n<p>From the program</p>\n\
             <pre><code>{}</code></pre>\n{}<p>to the term as it stands in the e-graph</p>\n\
             <pre><code>{}</code></pre>\n</details>\n",
            d.steps.len(),
            escaped(&d.start.to_string()),
            steps(&format!("{id}-step"), d, None),
            escaped(&d.goal().to_string()),
        ),
        Err(why) => {
            format!("<p class=\"faint\">No derivation: {}.</p>\n", escaped(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{short, time};

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.5, 1.25, 12.0, 265.4].map(short), ["0", "0.5", "1.25", "12", "265"]);
        assert_eq!([1e-5, 2e7].map(short), ["1e-5", "2e7"]);
        assert_eq!([0.2, 50.0, 2e3, 5e6].map(time), ["0.2 µs", "50 µs", "2 ms", "5 s"]);
    }
}
